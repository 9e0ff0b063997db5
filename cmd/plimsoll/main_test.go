package main

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

const siaPassword = "no-word-of-this-is-kept"

// ownCache runs tests with a cache that is not the user's (runs save what their swarms cost
// this machine, for plan) and with the password of a renter.
type ownCache struct{ *testing.M }

func (m ownCache) Run() int {
	dir, err := os.MkdirTemp("", "plimsoll-test-cache-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("PLIMSOLL_CACHE", dir)
	os.Setenv("SIA_API_PASSWORD", siaPassword)
	// Parallel tests wait for links and pauses more than they compute.
	if err := flag.Set("test.parallel", "5"); err != nil {
		panic(err)
	}
	return m.M.Run()
}

// TestMain makes the test binary be the program as well: scripts call it as
// plimsoll, and the parts that a run starts as `SELF node NAME` are served too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "node" || os.Getenv("PLIMSOLL_TEST_MAIN") != "" {
		code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		if file := os.Getenv("PLIMSOLL_TEST_STATUS"); file != "" {
			status, _ := os.ReadFile("/proc/self/status")
			_ = os.WriteFile(file, status, 0o600)
		}
		os.Exit(code)
	}
	testscript.Main(ownCache{m}, map[string]func(){
		"plimsoll": main,
	})
}

// TestScripts runs testdata/script/*.txtar, which read as documentation of what
// the program says and how it ends.
func TestScripts(t *testing.T) {
	t.Parallel()
	action, err := filepath.Abs("../../action")
	must(t, err)
	server := serve(t, make([]byte, 1<<20), func(r *http.Request) bool { return r.URL.Path != "/a.bin" })
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// measure is plimsoll where the machine may be too busy for a valid trial.
			"measure": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := exitStatus(ts, "plimsoll", args...); got != "0" && got != tooBusy {
					ts.Fatalf("plimsoll %v: status %s", args, got)
				}
			},
			// action is the GitHub Action's script, which must end with this status, or as
			// where the machine is too busy for a valid trial.
			"action": func(ts *testscript.TestScript, neg bool, args []string) {
				got := exitStatus(ts, "bash", filepath.Join(action, "run.sh"))
				if got != args[0] && got != tooBusy {
					ts.Fatalf("the action: status %s, want %s", got, args[0])
				}
			},
			// status is plimsoll that must end with this status.
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := exitStatus(ts, "plimsoll", args[1:]...); got != args[0] {
					ts.Fatalf("plimsoll %v: status %s, want %s", args[1:], got, args[0])
				}
			},
			// benchfmt exports a run as benchfmt, of which there is none where the machine
			// was too busy for a valid trial.
			"benchfmt": func(ts *testscript.TestScript, _ bool, args []string) {
				stream, want := "stdout", "Unit success"
				if err := ts.Exec("plimsoll", "export", args[0], "--format", "benchfmt"); err != nil {
					stream, want = "stderr", "trials that are over and valid, and this run has none"
				}
				if out := ts.ReadFile(stream); !strings.Contains(out, want) {
					ts.Fatalf("export %v: no %q in\n%s", args, want, out)
				}
			},
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("ACTION", action)
			e.Setenv("NL", "\n")
			e.Setenv("SERVER", server+"/a.bin")
			return nil
		},
	})
}

var tooBusy = strconv.Itoa(int(ui.CodeInvalid))

// exitStatus is the exit status of a program, or what kept it from having one.
func exitStatus(ts *testscript.TestScript, program string, args ...string) string {
	err := ts.Exec(program, args...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &exit):
		return strconv.Itoa(exit.ExitCode())
	}
	return err.Error()
}

var must = systemtest.Must
