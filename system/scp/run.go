package scp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// slots gives processes that run at the same time names of their own, and uses
// names again: each has a log file.
type slots struct {
	prefix string
	mu     sync.Mutex
	free   []string
	made   int
}

func (s *slots) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		name := s.free[n-1]
		s.free = s.free[:n-1]
		return name
	}
	s.made++
	return s.prefix + strconv.Itoa(s.made)
}

func (s *slots) give(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, name)
}

// remote is the object's place as scp has it.
func (n *node) remote(ref system.Ref) string {
	host := n.server.Host.Addr().String()
	if n.server.Host.Addr().Is6() {
		host = "[" + host + "]"
	}
	return n.server.User + "@" + host + ":" + path.Join(n.server.Path, string(ref))
}

// run runs scp on the client's host and calls meanwhile every few milliseconds,
// and once more when it has ended. It ends with ctx.
func (n *node) run(ctx context.Context, what, from, to string, meanwhile func() error) error {
	slot := n.slots.take()
	p, err := n.host.Start(ctx, testbed.Command{
		Name: slot, Role: "system", Dir: n.scratch.Path,
		Args: []string{
			n.bin, n.flag, "-B", "-F", "/dev/null", "-P", strconv.Itoa(n.server.Port), "-i", n.server.KeyFile,
			"-o", "UserKnownHostsFile=" + n.server.KnownHosts, "-o", "GlobalKnownHostsFile=/dev/null", "-o",
			"StrictHostKeyChecking=yes",
			"-o", "IdentitiesOnly=yes", "-o", "ControlPath=none", "-o", "LogLevel=ERROR", from, to,
		},
		Stop: []testbed.StopStep{{Signal: syscall.SIGTERM}, {Signal: syscall.SIGKILL, After: time.Second}},
	})
	if err != nil {
		n.slots.give(slot)
		return fmt.Errorf("scp: %s: %w", what, err)
	}
	said := sizeOf(p.LogPath()) // by those that had the name before
	// To look for what it has left behind takes longer than it ran: the next
	// operation does not wait for that, but takes another name.
	tidy := func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if p.Stop(stop) == nil {
			n.slots.give(slot)
		}
	}
	if err := n.await(ctx, p, meanwhile); err != nil {
		tidy()
		return fmt.Errorf("scp: %s: %w", what, err)
	}
	err = p.Err()
	if err != nil {
		err = fmt.Errorf("scp: %s: %w", what, n.explain(err, textFrom(p.LogPath(), said)))
	}
	n.tidying.Go(tidy)
	return err
}

// poll is how often a transfer under way is looked at.
const poll = 2 * time.Millisecond

// await waits until p has ended; its error is that of the caller's side.
func (n *node) await(ctx context.Context, p testbed.Process, meanwhile func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Done():
			if p.Err() != nil {
				return nil // what it said is what counts
			}
			return meanwhile()
		case <-tick.C:
			if err := meanwhile(); err != nil {
				return err
			}
		}
	}
}

// explain makes of what scp said the errors that callers tell apart.
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
	if ended := n.server.Ended(); ended != nil {
		return fmt.Errorf("%s: %w", said, ended)
	}
	return fmt.Errorf("%s: %w", said, err)
}

// full says whether the server's disk has no space, for which SFTP has no word.
func (n *node) full() bool {
	on, err := n.server.Host.Machine().Filesystem(n.server.Path)
	return err == nil && on.Free == 0
}

func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// textFrom is the end of a file, of which at most 4 KiB.
func textFrom(file string, off int64) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.NewSectionReader(f, off, 4<<10))
	return string(b)
}
