package scp

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestFaults(t *testing.T) {
	systemtest.Need(t, "sshd", System{}.Check(t.Context(), nil))
	for protocol := range flags {
		t.Run(protocol, func(t *testing.T) {
			hosts := systemtest.Hosts(t, 2)
			c, err := System{}.Start(systemtest.Context(t), system.Deployment{
				Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: system.Options{"protocol": protocol},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Stop(context.WithoutCancel(t.Context()))
			n := c.Nodes()[0].(*node)
			// What an earlier operation said is not taken for the next one's.
			if err := n.Get(systemtest.Context(t), "none", io.Discard); !errors.Is(err, system.ErrNotFound) {
				t.Errorf("get of nothing: %v", err)
			}
			n.tidying.Wait()
			right := n.server.KeyFile
			n.server.KeyFile = filepath.Join(filepath.Dir(right), "host_key")
			err = n.Get(systemtest.Context(t), "none", io.Discard)
			if !errors.Is(err, system.ErrAuth) || errors.Is(err, system.ErrNotFound) {
				t.Errorf("get with a wrong key: %v", err)
			}
			n.server.KeyFile = right
			if err := os.WriteFile(n.server.KnownHosts, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Put(systemtest.Context(t), "x", 1, strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "Host key verification failed") {
				t.Errorf("put to an unknown host: %v", err)
			}
			if left, err := os.ReadDir(n.scratch); err != nil || len(left) > 0 {
				t.Errorf("left at the client: %v, %v", left, err)
			}
		})
	}
}
