package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// A program of another system is found before anything starts.
func TestWrongProgramIsFound(t *testing.T) {
	dir := t.TempDir()
	says := func(name, answer string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	programs := map[string]string{
		"kubo": says("ipfs", "ipfs version 0.39.0"), "siad": says("siad", "siad v1.5.9-dev"),
		"codex": says("codex", "Codex version: v0.2.5"), "s3": says("versitygw", "Version  : 1.0.18"),
	}
	for _, s := range all.All() {
		name := s.Info().Name
		if programs[name] == "" {
			continue
		}
		for of, path := range programs {
			problems := system.Check(t.Context(), s, system.Options{"binary": path})
			if (len(problems) == 0) != (of == name) {
				t.Errorf("%s with the program of %s: %v", name, of, problems)
			}
			if of != name && len(problems) == 1 && !strings.Contains(problems[0].What, path) {
				t.Errorf("%s with the program of %s: the problem does not name it: %v", name, of, problems)
			}
		}
	}
}
