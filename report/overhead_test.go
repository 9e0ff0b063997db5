package report

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLook(t *testing.T) {
	r := costs{}.built(t)
	t.Log("\n" + text(t, r, 100))
	for _, f := range r.Fits {
		t.Logf("%+v", f.Rounds)
	}
	out := os.Getenv("PLIMSOLL_SHOTS")
	path := filepath.Join(out, "report.html")
	must(t, os.WriteFile(path, page(t, r), 0o644))
	s := look(t, "file://"+path)
	t.Logf("%+v", s)
}
