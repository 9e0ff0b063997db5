package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

// TestFill checks that Fill validates options completely by their table.
func TestFill(t *testing.T) {
	info := system.Info{Name: "some", Options: []system.Option{
		{Name: "piece", Type: "size", Default: "65536", Min: 16 << 10, Max: 1 << 20, Power: true},
		{Name: "slots", Type: "int", Min: 1},
		{Name: "wait", Type: "duration", Max: int64(time.Hour)},
		{Name: "kind", Type: "enum", Enum: []string{"a", "b"}, Default: "a"},
	}}
	full, err := info.Fill(system.Options{"slots": "3"})
	if err != nil || full["piece"] != "65536" || full["slots"] != "3" || full["wait"] != "" || full["kind"] != "a" {
		t.Errorf("%v, %v", full, err)
	}
	for want, opt := range map[string]system.Options{
		`"piece" is a power of two, from 16384 to 1048576, not "8192"`: {"piece": "8192"},
		`power of two, from 16384 to 1048576, not "2097152"`:           {"piece": "2097152"},
		`power of two, from 16384 to 1048576, not "65537"`:             {"piece": "65537"},
		`"slots" is at least 1, not "0"`:                               {"slots": "0"},
		`"slots" is at least 1, not "x"`:                               {"slots": "x"},
		`"wait" is from 0s to 1h0m0s, not "2h"`:                        {"wait": "2h"},
		`"wait" is from 0s to 1h0m0s, not "-1s"`:                       {"wait": "-1s"},
		`"kind" is one of a, b, not "c"`:                               {"kind": "c"},
		`unknown option "other"`:                                       {"other": "1"},
	} {
		if _, err := info.Fill(opt); err == nil || !strings.HasPrefix(err.Error(), "some: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", opt, err, want)
		}
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"named", "from-env", "in-path"} {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o700))
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
		opt := system.Options{"binary": c.option}
		got, err := system.Program("some", opt, "binary", "PLIMSOLL_SOME", "other", "in-path")
		if c.err == "" && (err != nil || got != filepath.Join(dir, c.want)) || c.err != "" &&
			(err == nil || !strings.HasPrefix(err.Error(), c.err)) {
			t.Errorf("option %q, variable %q: %q, %v", c.option, c.env, got, err)
		}
	}
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "PLIMSOLL_CACHE"} { // no directory for images
		t.Setenv(name, "")
	}
	got, err := system.Program("some", nil, "binary", "PLIMSOLL_NONE", "in-path")
	if err != nil || got != filepath.Join(dir, "in-path") {
		t.Errorf("without a cache: %q, %v", got, err)
	}
	_, err = system.Program("some", nil, "binary", "PLIMSOLL_NONE", "a", "b")
	if err == nil || err.Error() != "some: not found in PATH: a, b" {
		t.Errorf("nothing found: %v", err)
	}
}

// The program of another system is detected before anything starts.
func TestWrongProgramIsFound(t *testing.T) {
	dir := t.TempDir()
	says := func(name, answer string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o755))
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
