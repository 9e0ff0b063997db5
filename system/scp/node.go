package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is a directory on a server, together with the client's host on which scp runs.
type node struct {
	server  *sshd.Server
	host    testbed.Host
	bin     string
	flag    string
	scratch disk.Dir     // for the client's files
	files   atomic.Int64 // number of files so far
	slots   slots
	tidying sync.WaitGroup

	mu     sync.Mutex
	phases []system.Phase // of the latest operation
}

// Put implements system.Store. scp copies only regular files, so the object is written to one
// first; Phases reports how long that took.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref := system.Ref(disk.FileName(name))
	return ref, n.store(ctx, "put", ref, size, r)
}

// Update implements system.Updater with a copy to the same name.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	if err := valid(ref); err != nil {
		return err
	}
	return n.store(ctx, "update", ref, size, r)
}

func valid(ref system.Ref) error {
	if disk.Valid(string(ref)) != nil || !sshd.Literal(string(ref)) {
		return fmt.Errorf("scp: %q is no file name of ours: %w", ref, system.ErrBadRef)
	}
	return nil
}

func (n *node) store(ctx context.Context, how string, ref system.Ref, size int64, r io.Reader) error {
	began := time.Now()
	file := n.file()
	defer n.remove(file)
	if err := n.scratch.Write(ctx, filepath.Base(file), size, r); err != nil {
		return fmt.Errorf("scp: %s %s: %w", how, ref, err)
	}
	spooled := time.Now()
	err := n.run(ctx, how+" "+string(ref), file, n.remote(ref), func() error { return nil })
	n.account(system.Phase{Name: "spool", Took: spooled.Sub(began)}, system.Phase{Name: "scp",
		Took: time.Since(spooled)})
	return err
}

// Get implements system.Getter. scp writes a file, which is read while it grows.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := valid(ref); err != nil {
		return err
	}
	began := time.Now()
	file := n.file()
	defer n.remove(file)
	err := n.scratch.Write(ctx, filepath.Base(file), 0, strings.NewReader(""))
	var f io.ReadCloser
	if err == nil {
		f, err = n.scratch.Files.Open(file)
	}
	if err != nil {
		return fmt.Errorf("scp: get %s: %w", ref, err)
	}
	defer f.Close()
	var copying time.Duration
	err = n.run(ctx, "get "+string(ref), n.remote(ref), file, func() error {
		from := time.Now()
		_, err := io.Copy(w, f)
		copying = time.Since(from)
		return err
	})
	// Earlier copies overlapped with the run of scp.
	n.account(system.Phase{Name: "scp", Took: time.Since(began) - copying}, system.Phase{Name: "last copy",
		Took: copying})
	return err
}

// file returns the path of a new file on the client.
func (n *node) file() string {
	return filepath.Join(n.scratch.Path, fmt.Sprintf("object-%d", n.files.Add(1)))
}

func (n *node) remove(file string) { _ = n.scratch.Files.RemoveAll(file) }

func (n *node) account(p ...system.Phase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.phases = p
}

// Phases implements system.Phaser. It separates the time of scp, from the start of its process to
// its end, from that of Plimsoll.
func (n *node) Phases(context.Context) ([]system.Phase, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phases == nil {
		return nil, errors.New("scp: phases: there was no operation yet")
	}
	return slices.Clone(n.phases), nil
}

// Health implements system.Healther with a login that reads the probe.
func (n *node) Health(ctx context.Context) error { return n.server.Health(ctx) }

// Processes implements system.Node.
func (n *node) Processes() []testbed.Process { return n.server.Processes() }

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	err := n.server.Stop(ctx)
	n.tidying.Wait() // each call has a deadline
	return err
}

// Seed implements system.Seeder.
func (n *node) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.server.Seed(ctx, name, size, r)
}

// Stats implements system.Stats.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) { return n.server.Stats(ctx) }
