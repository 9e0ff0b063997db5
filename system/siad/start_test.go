package siad

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// fakeEnv makes the test binary a process that looks like siad until it is
// asked for what ends it.
const fakeEnv = "PLIMSOLL_TEST_FAKE_SIAD"

// serveFake answers until a wallet is to be made, which ends it.
func serveFake(args []string) {
	if args[0] == "version" {
		fmt.Println(devVersion)
		os.Exit(0)
	}
	value := func(flag string) string { return args[slices.Index(args, flag)+1] }
	if os.Getenv("SIA_API_PASSWORD") == "" || !slices.Contains(args, "--no-bootstrap") ||
		!slices.Contains(args, "--upnp=false") {
		fmt.Println("it would join the public network, or has no password")
		os.Exit(4)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /daemon/version", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"version":"1.5.9"}`)
	})
	asked := 0
	mux.HandleFunc("GET /consensus", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 { // modules are there later than the API
			w.WriteHeader(490)
		}
	})
	mux.HandleFunc("POST /gateway/connect/{peer}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /wallet/init", func(http.ResponseWriter, *http.Request) {
		fmt.Println("panic: consensus.db: no space left on device")
		os.Exit(3)
	})
	if os.Getenv(fakeEnv) == "refuses" {
		fmt.Println("cannot open the wallet:", value("-d"), value("-M"))
		os.Exit(5)
	}
	fmt.Println(http.ListenAndServe(value("--api-addr"), mux))
	os.Exit(1)
}

// fakeBinary is a program that is a fake siad of a kind.
func fakeBinary(t *testing.T, kind string) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), "siad")
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", fakeEnv, kind, self)
	must(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// TestDaemonThatDies: its end is noticed at once, its last log lines are in the
// error, and the others do not stay behind.
func TestDaemonThatDies(t *testing.T) {
	for kind, want := range map[string]string{
		"refuses": "cannot open the wallet",                       // before its API answers
		"dies":    "panic: consensus.db: no space left on device", // while the network forms
	} {
		t.Run(kind, func(t *testing.T) {
			hosts := systemtest.HostsOf(t, testbed.Options{}, 2)
			dir, from := t.TempDir(), time.Now()
			_, err := system.Begin(systemtest.Context(t), System{}, system.Start, system.Deployment{
				Hosts: hosts[:1], Client: hosts[1], Dir: dir,
				Options: system.Options{"binary": fakeBinary(t, kind), "hosts": "2"},
			})
			if err == nil || !strings.HasPrefix(err.Error(), "siad: ") || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "exit status") {
				t.Errorf("got %v", err)
			}
			if took := time.Since(from); took > sia.StopTime {
				t.Errorf("took %v to notice", took)
			}
			left, err := filepath.Glob("/proc/[0-9]*/cmdline")
			must(t, err)
			for _, path := range left {
				if b, _ := os.ReadFile(path); strings.Contains(string(b), dir) {
					t.Errorf("a daemon stayed behind: %s", path)
				}
			}
		})
	}
}

// TestSharedNetwork: without a namespace of its own, siad 1.5.9 would ask the
// router of this machine's network to forward a port.
func TestSharedNetwork(t *testing.T) {
	hosts := systemtest.Hosts(t, 2)
	ran := filepath.Join(t.TempDir(), "ran")
	bin := filepath.Join(t.TempDir(), "siad")
	must(t, os.WriteFile(bin, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755))
	for _, follow := range []bool{false, true} {
		_, err := system.Begin(t.Context(), System{}, system.Start, system.Deployment{
			Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Follow: follow,
			Options: system.Options{"binary": bin},
		})
		if err == nil || !strings.Contains(err.Error(), "no network namespace") || !strings.Contains(err.Error(),
			"plimsoll doctor") {
			t.Errorf("follow %v: %v", follow, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program was run")
	}
}
