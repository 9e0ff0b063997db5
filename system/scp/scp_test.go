package scp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

// An scp starts anew for each object, which is slow.
func TestConformance(t *testing.T) {
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: systemtest.Truths{Slow: true}})
}

// TestClientIsNotOfTheImage checks that option "image" applies only to sshd.
func TestClientIsNotOfTheImage(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"scp", "named", "from-env"} {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"), 0o700))
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct{ option, env, want string }{
		{filepath.Join(dir, "named"), "from-env", "named"}, {"", "from-env", "from-env"}, {"", "", "scp"},
	} {
		t.Setenv("PLIMSOLL_SCP", c.env)
		if got, err := program(system.Options{"image": "nowhere/none", "scp": c.option}); err != nil ||
			got != filepath.Join(dir, c.want) {
			t.Errorf("option %q, variable %q: %q, %v", c.option, c.env, got, err)
		}
	}
}

var must = systemtest.Must

// testCopies tests what differs by protocol; the conformance suite tests the rest with one
// protocol.
func testCopies(t *testing.T, n *node) {
	t.Helper()
	for _, size := range []int64{0, 1, 300_000} {
		name := fmt.Sprint("an object of ", size)
		ref, err := n.Put(systemtest.Context(t), name, size, systemtest.Content(name, size))
		must(t, err)
		must(t, n.Update(systemtest.Context(t), ref, size+1, systemtest.Content("new", size+1)))
		var got bytes.Buffer
		if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(),
			systemtest.Bytes("new", size+1)) {
			t.Errorf("get of %d bytes: %d, %v", size+1, got.Len(), err)
		}
	}
}

func TestProtocols(t *testing.T) {
	systemtest.Need(t, System{}, nil)
	for _, protocol := range []string{"sftp", "scp"} {
		t.Run(protocol, func(t *testing.T) {
			c := systemtest.Start(t, System{}, system.Options{"protocol": protocol}, systemtest.Hosts(t, 2))
			n := c.Nodes()[0].(*node)
			if got := c.Identity()["protocol"]; got != protocol {
				t.Errorf("protocol %s", got)
			}
			testCopies(t, n)
			// The output of an earlier operation is not attributed to the next one.
			if err := n.Get(systemtest.Context(t), "none", io.Discard); !errors.Is(err, system.ErrNotFound) {
				t.Errorf("get of nothing: %v", err)
			}
			n.tidying.Wait()
			right := n.server.KeyFile
			n.server.KeyFile = filepath.Join(filepath.Dir(n.server.Path), "host_key")
			err := n.Get(systemtest.Context(t), "none", io.Discard)
			if !errors.Is(err, system.ErrAuth) || errors.Is(err, system.ErrNotFound) {
				t.Errorf("get with a wrong key: %v", err)
			}
			n.server.KeyFile = right
			must(t, os.WriteFile(n.server.KnownHosts, nil, 0o600))
			if _, err := n.Put(systemtest.Context(t), "x", 1, strings.NewReader("x")); err == nil ||
				!strings.Contains(err.Error(), "Host key verification failed") {
				t.Errorf("put to an unknown host: %v", err)
			}
			if left, err := os.ReadDir(n.scratch.Path); err != nil || len(left) > 0 {
				t.Errorf("left at the client: %v, %v", left, err)
			}
		})
	}
}

// TestFailsAtOnce checks that the words of an scp that fails at once are not missed.
func TestFailsAtOnce(t *testing.T) {
	host := systemtest.Hosts(t, 1)[0]
	bin := filepath.Join(t.TempDir(), "scp")
	must(t, os.WriteFile(bin, []byte("#!/bin/sh\necho No such file >&2\nexit 1\n"), 0o700))
	n := &node{server: &sshd.Server{Process: member.Process{Host: host}}, host: host, bin: bin,
		scratch: disk.Dir{Files: host.Files(), Path: t.TempDir()}, prefix: "scp/client-", free: make(chan slot, 1)}
	for range 20 {
		if err := n.Get(systemtest.Context(t), "x", io.Discard); !errors.Is(err, system.ErrNotFound) {
			t.Fatalf("%v", err)
		}
	}
	n.tidying.Wait()
}
