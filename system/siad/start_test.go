package siad

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestDaemonThatDies checks that the end of a daemon is noticed at once, that its last log lines
// are in the error, and that the other daemons are stopped.
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
				Options: system.Options{"binary": fakeBinary(t, kind, devVersion), "hosts": "2"},
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

// TestSharedNetwork checks that siad is only run with its own network namespace: siad 1.5.9 would
// otherwise ask the router of this machine's network to forward a port.
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
