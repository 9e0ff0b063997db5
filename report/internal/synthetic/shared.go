package synthetic

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Shared is a run directory that takes seconds to write and that several tests
// of a package read; none may change it.
type Shared struct {
	once sync.Once
	base string
	err  error
}

// Dir is the run's directory.
func (s *Shared) Dir(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.base, s.err = os.MkdirTemp("", "plimsoll-report-"); s.err == nil {
			dir, _ := Run{}.Write(t)
			s.err = os.CopyFS(filepath.Join(s.base, "run"), os.DirFS(dir))
		}
	})
	must(t, s.err)
	return filepath.Join(s.base, "run")
}

// Remove removes it, if there was one, after the tests (TestMain).
func (s *Shared) Remove() {
	if s.base != "" {
		_ = os.RemoveAll(s.base)
	}
}
