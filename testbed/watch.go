package testbed

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/record"
)

// watched is a server on this machine that we did not start.
type watched struct {
	name  string
	pids  map[int]uint64 // listening processes when it was found, with their start times
	usage usageMeter
}

// Watch observes the processes that listen at an address (host:port) of this machine like
// our own: they get samples under the given name with role "system", and are not counted
// as others. It does not affect them. ok is false if the address is elsewhere, or if the
// kernel does not show which process listens there.
func (t *Testbed) Watch(ctx context.Context, name, address string) (ok bool, err error) {
	host, portText, err := net.SplitHostPort(address)
	port, notNumber := strconv.Atoi(portText)
	if err := cmp.Or(err, notNumber); err != nil {
		return false, fmt.Errorf("testbed: watch %s: %w", address, err)
	}
	here, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return false, nil // it is the address of another machine
	}
	here.Close()
	sockets := listeners(port)
	w := &watched{name: name, pids: map[int]uint64{}}
	for pid, s := range scan() {
		if pid != os.Getpid() && holds(pid, sockets) {
			w.pids[pid] = s.Starttime
		}
	}
	if len(w.pids) == 0 {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = append(t.watched, w)
	return true, nil
}

// sample measures the watched processes and their descendants, and adds their pids to
// leaders.
func (w *watched) sample(all map[int]stat, leaders map[int]bool) record.Sample {
	mine := map[int]bool{}
	pid := 0
	for p, birth := range w.pids {
		if all[p].Starttime == birth { // pids are used again
			mine[p], leaders[p] = true, true
			if pid == 0 || p < pid {
				pid = p
			}
		}
	}
	s := w.usage.poll(membersOf(all, mine))
	s.Process, s.Role, s.PID = w.name, "system", pid
	return s
}

// holds reports whether a process has one of the sockets open.
func holds(pid int, sockets map[string]bool) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	open, _ := p.FileDescriptorTargets() // empty for another user's process
	return slices.ContainsFunc(open, func(file string) bool { return sockets[file] })
}

// listeners returns the sockets, named as in /proc/PID/fd, that listen on a TCP port of
// this process's network.
func listeners(port int) map[string]bool {
	const listens = 10
	//lint:ignore SA1019 what replaces it is a library to ask the kernel with, for one question
	v4, _ := procFS().NetTCP()
	//lint:ignore SA1019 likewise
	v6, _ := procFS().NetTCP6() // without IPv6 there is only one of them
	out := map[string]bool{}
	for _, s := range slices.Concat(v4, v6) {
		if s.St == listens && s.LocalPort == uint64(port) {
			out[fmt.Sprintf("socket:[%d]", s.Inode)] = true
		}
	}
	return out
}
