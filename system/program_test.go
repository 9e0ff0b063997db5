package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"named", "from-env", "in-path"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct{ option, env, want, err string }{
		{filepath.Join(dir, "named"), filepath.Join(dir, "from-env"), "named", ""},
		{"", filepath.Join(dir, "from-env"), "from-env", ""},
		{"", "", "in-path", ""},
		{"named", "", "named", ""}, // in PATH
		{filepath.Join(dir, "none"), "", "", "some: option `binary`"},
		{"", filepath.Join(dir, "none"), "", "some: PLIMSOLL_SOME"},
	} {
		t.Setenv("PLIMSOLL_SOME", c.env)
		got, err := Program("some", Options{"binary": c.option}, "binary", "PLIMSOLL_SOME", "other", "in-path")
		if c.err == "" && (err != nil || got != filepath.Join(dir, c.want)) || c.err != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), c.err)) {
			t.Errorf("option %q, variable %q: %q, %v", c.option, c.env, got, err)
		}
	}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "PLIMSOLL_CACHE"} { // nowhere for images
		t.Setenv(name, "")
	}
	if got, err := Program("some", nil, "binary", "PLIMSOLL_NONE", "in-path"); err != nil || got != filepath.Join(dir,
		"in-path") {
		t.Errorf("without a cache: %q, %v", got, err)
	}
	if _, err := Program("some", nil, "binary", "PLIMSOLL_NONE", "a", "b"); err == nil ||
		err.Error() != "some: not found in PATH: a, b" {
		t.Errorf("nothing found: %v", err)
	}
}
