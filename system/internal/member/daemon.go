// Package member is a node of an embedded swarm: its process, and the control
// API through which it gets its tasks on its own host, so that nothing but what
// nodes say to each other crosses a link.
package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// answer is how long a node may take to answer what needs no work.
const answer = 10 * time.Second

// Kind is what the nodes of a swarm have in common.
type Kind struct {
	Name  string             // the system's
	Check func(string) error // what is wrong with a ref
	Env   []string           // of the processes, beside their own: KEY=VALUE
}

// Daemon is one process that gets and gives contents, with what it keeps.
type Daemon struct {
	*Process
	kind Kind
	dir  string
}

// Start runs a node that keeps what it has in d.Dir/label, and waits until it is
// ready. listen is the address of its peers' side; args are added to --control=ADDRESS and
// --dir=DIRECTORY.
func (k Kind) Start(ctx context.Context, d system.Deployment, h testbed.Host, label, listen string, args ...string) (*Daemon, error) {
	taken, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, err
	}
	n := &Daemon{kind: k, dir: filepath.Join(d.Dir, label)}
	if n.Process, err = NewProcess(ctx, d, k.Name, h, label, int(taken.Port())); err != nil {
		return nil, err
	}
	n.Process.env = k.Env
	if err := n.run(ctx, append([]string{"--dir=" + n.dir}, args...)...); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Daemon) run(ctx context.Context, args ...string) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	return n.Run(ctx, args...)
}

func (n *Daemon) check(ref system.Ref) error {
	if err := n.kind.Check(string(ref)); err != nil {
		return fmt.Errorf("%s: %q is no ref (%w): %w", n.kind.Name, ref, err, system.ErrBadRef)
	}
	return nil
}

func (n *Daemon) of(ctx context.Context, method string, ref system.Ref, in, out any) error {
	if err := n.check(ref); err != nil {
		return err
	}
	return n.Call(ctx, method, fetchPath+string(ref), in, out)
}

// Publish puts content on the node's disk and returns what the node says of it.
func (n *Daemon) Publish(ctx context.Context, title string, size int64, r io.Reader) ([]byte, error) {
	if err := n.Alive(); err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, fmt.Errorf("%s: %q has %d bytes: a content has at least one", n.kind.Name, title, size)
	}
	u := n.URL(publishPath)
	u.RawQuery = url.Values{"title": {title}}.Encode()
	return n.local.Call(ctx, web.Call{Method: http.MethodPut, URL: u, Body: r, Size: size})
}

// Fetch gives the node a task, as JSON.
func (n *Daemon) Fetch(ctx context.Context, ref system.Ref, task any) error {
	return n.of(ctx, http.MethodPost, ref, task, nil)
}

// Progress implements system.Member. Counts begin anew with the process.
func (n *Daemon) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	return f, n.of(ctx, http.MethodGet, ref, nil, &f)
}

// ReadBack implements system.Member: what is on the node's disk.
func (n *Daemon) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.Read(ctx, filePath, ref, w)
}

// Read writes what the node answers for path and ref to w.
func (n *Daemon) Read(ctx context.Context, path string, ref system.Ref, w io.Writer) error {
	if err := n.check(ref); err != nil {
		return err
	}
	if err := n.Alive(); err != nil {
		return err
	}
	return n.local.Get(ctx, system.HTTPTarget{URL: n.URL(path + string(ref))}, w)
}

// Forget implements system.Member.
func (n *Daemon) Forget(ctx context.Context, ref system.Ref) error {
	return n.of(ctx, http.MethodDelete, ref, nil, nil)
}

// Connect tells the node of a peer.
func (n *Daemon) Connect(ctx context.Context, address string) error {
	return n.Call(ctx, http.MethodPost, connectPath, address, nil)
}

// Restart implements system.Restarter: at the same addresses.
func (n *Daemon) Restart(ctx context.Context, keep bool) error {
	if err := n.Stop(ctx); err != nil {
		return err
	}
	if !keep {
		if err := os.RemoveAll(n.dir); err != nil {
			return fmt.Errorf("%s: empty the store of %s: %w", n.kind.Name, n.label, err)
		}
	}
	if err := n.run(ctx, n.args...); err != nil {
		return fmt.Errorf("%s: restart: %w", n.kind.Name, err)
	}
	return nil
}
