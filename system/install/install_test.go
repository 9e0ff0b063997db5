package install

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestLocksNameEveryFileByItsHash(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9-]+==[0-9][0-9a-z.]*( \\)?$`)
	hash := regexp.MustCompile(`^    --hash=sha256:[0-9a-f]{64}( \\)?$`)
	for _, p := range append(Programs(), Program{Name: "build"}) {
		text := string(p.Lock())
		if !strings.Contains(text, "=="+p.Version) {
			t.Errorf("%s: the lock does not have version %s", p.Name, p.Version)
		}
		hashes := 1
		for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
			switch {
			case strings.HasPrefix(line, "#"):
			case hash.MatchString(line):
				hashes++
			case pinned.MatchString(line) && hashes > 0:
				hashes = 0
			default:
				t.Errorf("%s: line %d: %q", p.Name, i+1, line)
			}
		}
		if hashes == 0 {
			t.Errorf("%s: the last package has no hash", p.Name)
		}
	}
}

// python replaces python3 by a program that creates environments like the real one, and runs body
// when it is called to install.
func python(t *testing.T, body string) (tries string) {
	t.Helper()
	dir := t.TempDir()
	tries = filepath.Join(dir, "tries")
	script := "#!/bin/sh\n" +
		`if [ "$1" = -c ]; then exit 0; fi
if [ "$2" = venv ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && exit 0; fi
echo "$*" >> ` + tries + "\n" + `bin=$(dirname "$0")
` + body + "\n"
	must(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	return tries
}

func program(t *testing.T) Program {
	p, ok := ByName("tahoe")
	if !ok {
		t.Fatal("no tahoe")
	}
	return p
}

func TestInstallOnce(t *testing.T) {
	tries := python(t, `echo "installing"; sleep 0.3; touch "$bin/tahoe"`)
	p := program(t)
	if _, ok := Find(p.Name); ok {
		t.Fatal("found before it was installed")
	}
	var log strings.Builder
	bin, err := p.Install(t.Context(), &log)
	must(t, err)
	if got, ok := Find(p.Name); !ok || got != bin {
		t.Errorf("found in %q, installed in %q", got, bin)
	}
	if !strings.Contains(log.String(), "installing") {
		t.Errorf("log: %q", log.String())
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if again, err := p.Install(t.Context(), io.Discard); err != nil || again != bin {
				t.Errorf("again: %q, %v", again, err)
			}
		})
	}
	wg.Wait()
	said, err := os.ReadFile(tries)
	must(t, err)
	runs := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(runs) != 2 { // the packages for the build, then the program
		t.Errorf("pip ran %d times:\n%s", len(runs), said)
	}
	for _, run := range runs {
		for _, must := range []string{"--require-hashes", "--no-deps", "--only-binary :all:", "-r "} {
			if !strings.Contains(run, must) {
				t.Errorf("pip was called without %s: %s", must, run)
			}
		}
	}
}

func TestAnUnfinishedInstallationIsMadeAnew(t *testing.T) {
	python(t, `touch "$bin/tahoe"`)
	p := program(t)
	dir, err := p.Dir()
	must(t, err)
	// A process killed during an installation leaves the command without the mark.
	left := filepath.Join(dir, "bin", "left-over")
	must(t, os.MkdirAll(filepath.Dir(left), 0o755))
	for _, f := range []string{left, filepath.Join(dir, "bin", "tahoe")} {
		must(t, os.WriteFile(f, nil, 0o755))
	}
	if _, ok := Find(p.Name); ok {
		t.Fatal("an unfinished installation passes for one")
	}
	_, err = p.Install(t.Context(), io.Discard)
	must(t, err)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was left over is still there: %v", err)
	}
}

func TestFailuresSayWhyAndLeaveNothing(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"pip fails":  {`echo "no route to the index"; exit 1`, "no route to the index"},
		"no command": {`exit 0`, "there is no command tahoe"},
		"wrong hash": {`echo "THESE PACKAGES DO NOT MATCH THE HASHES"; exit 1`, "DO NOT MATCH"},
		"never ends": {`sleep 600`, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			python(t, c.body)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			begun := time.Now()
			_, err := program(t).Install(ctx, io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(),
				"tahoe: install: ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if time.Since(begun) > 30*time.Second {
				t.Error("the deadline was not kept")
			}
			if _, ok := Find("tahoe"); ok {
				t.Error("found after a failure")
			}
		})
	}
}

func TestNoPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	_, err := program(t).Install(t.Context(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "python3-venv") {
		t.Errorf("error %v does not say what to do", err)
	}
}

func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"#!/opt/venv/bin/python\nimport x\n": "/opt/venv/bin/python", "#!/usr/bin/python3 \n": "/usr/bin/python3",
		"#!/bin/sh\n": "", "\x7fELF": "", "": "", "#!/usr/bin/env python3\n": "",
	} {
		path := filepath.Join(dir, "deluged")
		must(t, os.WriteFile(path, []byte(text), 0o755))
		if got := Interpreter(path); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
