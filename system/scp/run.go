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
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// slot is the name of a process, which names its log file.
type slot struct {
	name   string
	logged int64 // bytes in the log from earlier processes of that name
}

// slots assigns unique names to processes that run at the same time, and reuses names.
type slots struct {
	prefix string
	mu     sync.Mutex
	free   []slot
	made   int
}

func (s *slots) take() slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		one := s.free[n-1]
		s.free = s.free[:n-1]
		return one
	}
	s.made++
	return slot{name: s.prefix + strconv.Itoa(s.made)}
}

func (s *slots) give(one slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, one)
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
	slot := n.slots.take()
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
		n.slots.give(slot)
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
			n.slots.give(slot)
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
