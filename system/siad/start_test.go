package siad

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/replay"
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

// replayed returns a daemon of the recorded network.
func replayed(t *testing.T, steps []replay.Exchange, opts ...replay.Option) daemon {
	t.Helper()
	s := replay.Serve(t, steps, append(opts, replay.Login("", secret))...)
	return daemon{&sia.Daemon{API: client(t, s.URL), At: []string{"", "127.0.0.1:21001", "127.0.0.1:21012"},
		Store: disk.Dir{Path: "/tmp/rec/sid/host1/store"}}}
}

var recorded = sia.Plan{Hosts: 3, HostSize: 1 << 30, Data: 1, Total: 3}

// renterSteps returns the renter's exchanges when a network forms, in siad's order.
func renterSteps(rec []replay.Exchange) []replay.Exchange {
	r := replay.Of(rec, "renter")
	stop := replay.Steps(r, "start the CPU miner (GET)")
	stop[0].Step, stop[0].Path = "stop the miner", "/miner/stop" // not in the recording
	return replay.Chain(
		replay.Steps(r, "wallet init (the answer carries the seed)",
			"wallet unlock (blocks until the chain was scanned)", "start the CPU miner (GET)"),
		replay.Optional(replay.Poll(replay.Steps(r, "poll wallet while mining"))),
		replay.Steps(r, "send 20000 SC to the host", "send 20000 SC to the host"),
		replay.Poll(replay.Steps(r, "poll hostdb/active until all hosts are known")),
		replay.Steps(r, "hostdb/active, complete", "set the allowance with checkforipviolation=false"),
		replay.Poll(replay.Steps(r, "poll uploadready")),
		stop,
	)
}

func hostSteps(rec []replay.Exchange) []replay.Exchange {
	h := replay.Of(rec, "host1")
	return replay.Chain(
		replay.Steps(h, "connect to the renter node (peer address in the path)",
			"wallet init (the answer carries the seed)", "wallet unlock (blocks until the chain was scanned)",
			"host wallet address"),
		replay.Poll(replay.Steps(h, "poll host wallet until confirmed")),
		replay.Steps(h, "add a storage folder (size must be a multiple of 64 sectors)", "accept contracts", "announce"),
	)
}

// TestNetworkForms forms a private network in the required order with the answers of a real one. A
// call out of order fails.
func TestNetworkForms(t *testing.T) {
	rec := replay.Load(t, "testdata/network.jsonl")
	renter, host := replayed(t, renterSteps(rec)), replayed(t, hostSteps(rec))
	n := newNode(renter.API, system.Options{}, recorded)
	must(t, form(systemtest.Context(t), n, renter, []daemon{host}, recorded, "x"))
}

// TestLostAnnouncement checks that a lost announcement is repeated, because siad relays it only
// once.
func TestLostAnnouncement(t *testing.T) {
	var announced atomic.Int32
	serve := func(h http.HandlerFunc) daemon {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return daemon{&sia.Daemon{API: client(t, s.URL), At: []string{"", "", "127.0.0.1:21012"}}}
	}
	host := serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/host/announce" {
			announced.Add(1)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	renter := serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if announced.Load() < 2 {
			io.WriteString(w, `{"hosts":null}`)
			return
		}
		io.WriteString(w, `{"hosts":[{}]}`)
	})
	n := newNode(renter.API, system.Options{}, recorded)
	must(t, host.announce(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, n.awaitKnown(ctx, []daemon{host}, 20*time.Millisecond))
}

// TestJoin checks that a peer that has already connected to the daemon counts as connected.
func TestJoin(t *testing.T) {
	rec := replay.Of(replay.Load(t, "testdata/follow.jsonl"), "host1")
	d := replayed(t, replay.Steps(rec, "connect to the renter node (peer address in the path)", "connect again",
		"connect to a dead address"))
	for range 2 {
		must(t, d.join(t.Context(), "127.0.0.1:21001"))
	}
	fails(t, "a dead peer", d.join(t.Context(), "127.0.0.1:9"), nil, "connection refused")
}
