package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// HostsVariable is an environment variable for tests: "agents" puts each host behind its
// own agent ([Wanted]). It is not part of any plan.
const HostsVariable = "PLIMSOLL_HOSTS"

// Wanted returns the Hosts of [testbed.Options] that the environment asks for; nil: none.
func Wanted() testbed.Hosts {
	if os.Getenv(HostsVariable) == "agents" {
		return Behind
	}
	return nil
}

// Behind creates a host on this machine and starts an agent in its network. The returned
// host is used only through the agent. Calls to it use a Unix socket, which belongs to no
// network, so they do not cross the host's link.
func Behind(ctx context.Context, t *testbed.Testbed, name string) (testbed.Host, error) {
	at, err := t.LocalHost(ctx, name)
	if err != nil {
		return nil, err
	}
	return launch(ctx, t, at, DefaultOrphaned)
}

func launch(ctx context.Context, t *testbed.Testbed, at testbed.Host, orphaned time.Duration) (h *Host, err error) {
	ours, theirs, err := NewCredentials()
	dir, failed := t.Scratch("agent")
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "socket")
	p, err := at.Start(ctx, testbed.Command{
		Name: "agent", Role: testbed.RoleAgent, Stdin: io.NopCloser(bytes.NewReader(theirs.Encoded())),
		Args: t.Self("node", "agent", "--listen", "unix:"+socket, "--name", at.Name(), "--address", at.Addr().String(),
			"--dir", dir, "--orphaned", orphaned.String()),
		Env: []string{"TMPDIR=" + os.TempDir()},
		Ready: func(ctx context.Context) (err error) {
			h, err = Reach(ctx, Options{Name: at.Name(), Addr: at.Addr(), Credentials: ours, Bed: t, Machine: at.Machine(),
				Alive: orphaned / 10, Dial: func(ctx context.Context) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "unix", socket)
				}})
			return err
		},
		StopTime: stopTimeout,
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		h.Close()
	}()
	return h, nil
}
