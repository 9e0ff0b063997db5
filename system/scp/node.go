package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
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
	tidying sync.WaitGroup
	phases  atomic.Pointer[[]system.Phase] // of the latest operation

	prefix string       // of the names of processes
	named  atomic.Int64 // number of names so far
	free   chan slot    // names that no process has
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

func (n *node) account(p ...system.Phase) { n.phases.Store(&p) }

// Phases implements system.Phaser. It separates the time of scp, from the start of its process to
// its end, from that of Plimsoll.
func (n *node) Phases(context.Context) ([]system.Phase, error) {
	p := n.phases.Load()
	if p == nil {
		return nil, errors.New("scp: phases: there was no operation yet")
	}
	return *p, nil
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

// slot is the name of a process, which names its log file.
type slot struct {
	name   string
	logged int64 // bytes in the log from earlier processes of that name
}

// take returns a free slot, so that processes that run at the same time have different names, and
// names are used again.
func (n *node) take() slot {
	select {
	case s := <-n.free:
		return s
	default:
		return slot{name: n.prefix + strconv.FormatInt(n.named.Add(1), 10)}
	}
}

func (n *node) give(s slot) {
	select {
	case n.free <- s:
	default: // enough names are free
	}
}

// remote returns the object's location in scp's notation.
func (n *node) remote(ref system.Ref) string {
	host := n.server.Host.Addr().String()
	if n.server.Host.Addr().Is6() {
		host = "[" + host + "]"
	}
	return n.server.User + "@" + host + ":" + path.Join(n.server.Path, string(ref))
}

// run runs scp on the client's host and calls meanwhile every few milliseconds, and once more after
// scp has ended. It stops scp when ctx ends.
func (n *node) run(ctx context.Context, what, from, to string, meanwhile func() error) error {
	slot := n.take()
	p, err := n.host.Start(ctx, testbed.Command{
		Name: slot.name, Role: "system", Dir: n.scratch.Path,
		Args: []string{
			n.bin, n.flag, "-B", "-F", "/dev/null", "-P", strconv.Itoa(n.server.Port), "-i", n.server.KeyFile,
			"-o", "UserKnownHostsFile=" + n.server.KnownHosts, "-o", "GlobalKnownHostsFile=/dev/null", "-o",
			"StrictHostKeyChecking=yes",
			"-o", "IdentitiesOnly=yes", "-o", "ControlPath=none", "-o", "LogLevel=ERROR", from, to,
		},
		StopTime: time.Second,
	})
	if err != nil {
		n.give(slot)
		return fmt.Errorf("scp: %s: %w", what, err)
	}
	// The search for processes left behind takes longer than the copy. The next operation does not
	// wait for it, but uses another name.
	tidy := func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if p.Stop(stop) == nil {
			if log, err := os.Stat(p.LogPath()); err == nil {
				slot.logged = log.Size()
			}
			n.give(slot)
		}
	}
	if err := n.await(ctx, p, meanwhile); err != nil {
		tidy()
		return fmt.Errorf("scp: %s: %w", what, err)
	}
	err = p.Err()
	if err != nil {
		log, _ := os.Open(p.LogPath()) // without a log, the error has no text
		defer log.Close()
		said, _ := io.ReadAll(io.NewSectionReader(log, slot.logged, 4<<10))
		err = fmt.Errorf("scp: %s: %w", what, n.explain(err, string(said)))
	}
	n.tidying.Go(tidy)
	return err
}

// poll is the interval at which a running transfer is checked.
const poll = 2 * time.Millisecond

// await waits until p has ended; it returns only errors of the caller's side.
func (n *node) await(ctx context.Context, p testbed.Process, meanwhile func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Done():
			if p.Err() != nil {
				return nil // its output explains the failure
			}
			return meanwhile()
		case <-tick.C:
			if err := meanwhile(); err != nil {
				return err
			}
		}
	}
}

// explain maps scp's output to the errors that callers distinguish.
func (n *node) explain(err error, said string) error {
	if said == "" {
		return err
	}
	said = strings.Join(strings.Fields(said), " ")
	switch {
	case strings.Contains(said, "No such file"):
		return fmt.Errorf("%s: %w", said, system.ErrNotFound)
	case strings.Contains(said, "Permission denied ("):
		return fmt.Errorf("%s: %w", said, system.ErrAuth)
	case strings.Contains(said, "No space left"), n.full():
		return fmt.Errorf("%s: %w", said, system.ErrQuota)
	}
	if ended := n.server.Alive(); ended != nil {
		return fmt.Errorf("%s: %w", said, ended)
	}
	return fmt.Errorf("%s: %w", said, err)
}

// full reports whether the server's disk is full, for which SFTP has no status.
func (n *node) full() bool {
	on, err := n.server.Host.Machine().Filesystem(n.server.Path)
	return err == nil && on.Free == 0
}
