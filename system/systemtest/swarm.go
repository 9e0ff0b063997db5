package systemtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Swarm is one system of nodes that get content from each other, in one
// configuration.
type Swarm struct {
	System  system.System
	Options system.Options
	// Daemon is the name of the program in PLIMSOLL_REQUIRE; empty: the system's.
	Daemon string
	// Plain: the store keeps content in whole runs of bytes, so that the test
	// finds them on disk and can spoil them.
	Plain bool
	// Leaf: a node does not pass on what it fetched (a baseline).
	Leaf bool
	// Namespaces: its nodes are started in network namespaces only.
	Namespaces bool
	// Brief: another suite of the same system kills its nodes.
	Brief bool
	// Fetching is the limit of a fetch of a few MiB; 0: a minute.
	Fetching time.Duration
}

const (
	quarter = 250 * time.Millisecond // a node is asked four times a second
	watched = 4 * time.Second        // how long a node is looked at that must not come to an end
	slow    = 16e6                   // rate of a slow link, bit/s: there is a moment when half of a content is there
)

// swarm is a deployment under test.
type swarm struct {
	*testing.T
	Swarm
	c     system.Cluster
	dir   string
	hosts []testbed.Host // of the nodes
	nodes []system.Member
}

// RunSwarm runs the cases of a [system.Member]. Those with a swarm of their own
// run side by side: nearly all of their time is waiting for a slow node.
func RunSwarm(t *testing.T, s Swarm) {
	Need(t, cmp.Or(s.Daemon, s.System.Info().Name), system.Check(t.Context(), s.System, s.Options))
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		w := s.start(t, 4, false)
		for _, c := range []struct {
			name string
			body func(*swarm)
		}{
			{"abilities", func(w *swarm) { wantAbilities(w.T, s.System, w.c, nil) }},
			{"sizes", (*swarm).sizes},
			{"three at once", (*swarm).threeAtOnce},
			{"several seeders", (*swarm).severalSeeders},
			{"handed on", (*swarm).handedOn},
			{"unknown", (*swarm).unknown},
			{"bad refs", (*swarm).badRefs},
			{"bad readers", (*swarm).badReaders},
			{"forget", (*swarm).forget},
			{"open files", (*swarm).openFiles},
			{"stop", (*swarm).stop},
		} {
			t.Run(c.name, func(t *testing.T) {
				v := *w
				v.T = t
				c.body(&v)
			})
		}
	})
	if s.Brief {
		return
	}
	for _, c := range []struct {
		name  string
		nodes int
		slow  bool
		body  func(*swarm)
	}{
		{"leecher killed, data kept", 2, true, func(w *swarm) { w.leecherKilled(true) }},
		{"leecher killed, data lost", 2, true, func(w *swarm) { w.leecherKilled(false) }},
		{"only seeder killed", 3, true, (*swarm).seederKilled},
		{"spoilt on disk", 2, false, (*swarm).spoilt},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.body(s.start(t, c.nodes, c.slow))
		})
	}
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		wantPortInUse(t, s.System, s.deployment(t, HostsOf(t, testbed.Options{Plain: !s.Namespaces}, 3)))
	})
}

// start brings up n nodes and a host for the client.
func (s Swarm) start(t *testing.T, n int, slowly bool) *swarm {
	t.Helper()
	var hosts []testbed.Host
	if slowly {
		hosts = SlowHosts(t, slow, n+1)
	} else {
		hosts = HostsOf(t, testbed.Options{Plain: !s.Namespaces}, n+1)
	}
	d := s.deployment(t, hosts)
	c, err := system.Begin(Context(t), s.System, system.Start, d)
	must(t, "start", err)
	StopAtEnd(t, c)
	wantHostDirs(t, d)
	w := &swarm{T: t, Swarm: s, c: c, dir: d.Dir, hosts: d.Hosts}
	for _, node := range c.Nodes() {
		w.nodes = append(w.nodes, node.(system.Member))
	}
	if len(w.nodes) != n || len(processes(c.Nodes()...)) < n {
		t.Fatalf("%d nodes, %d processes on %d hosts", len(w.nodes), len(processes(c.Nodes()...)), n)
	}
	return w
}

// deployment has the client on the last of hosts.
func (s Swarm) deployment(t *testing.T, hosts []testbed.Host) system.Deployment {
	last := len(hosts) - 1
	return system.Deployment{Hosts: hosts[:last], Client: hosts[last], Dir: t.TempDir(),
		Options: maps.Clone(s.Options), Swarm: true}
}

func (w *swarm) limit() time.Duration { return cmp.Or(w.Fetching, time.Minute) }

func (w *swarm) publish(i int, name string, data []byte) system.Ref {
	w.Helper()
	return store(w.nodes[i].Publish).bytes(w.T, name, data)
}

func (w *swarm) address(i int) string {
	w.Helper()
	a, err := w.nodes[i].Address(Context(w.T))
	must(w.T, "address", err)
	return a
}

func (w *swarm) fetch(i int, ref system.Ref, from ...int) {
	w.Helper()
	var addresses []string
	for _, k := range from {
		addresses = append(addresses, w.address(k))
	}
	within(w.T, "to give a node a task", func() {
		must(w.T, fmt.Sprintf("node %d: fetch %s", i, ref), w.nodes[i].Fetch(Context(w.T), ref, addresses))
	})
}

func (w *swarm) forgets(i int, ref system.Ref) {
	w.Helper()
	must(w.T, fmt.Sprintf("node %d: forget", i), w.nodes[i].Forget(Context(w.T), ref))
}

// look asks node i how far it is, and holds that to be possible after last.
func (w *swarm) look(i int, ref system.Ref, size int64, last *system.Progress) (f system.Progress) {
	w.Helper()
	within(w.T, "to say how far it is", func() {
		var err error
		f, err = w.nodes[i].Progress(Context(w.T), ref)
		must(w.T, fmt.Sprintf("node %d: progress of %s", i, ref), err)
	})
	wrongSize := f.Size != size && (f.Size != -1 || last.Size > 0 || f.Complete)
	if wrongSize || f.Verified < last.Verified || f.Verified > size || f.Written > size || f.Complete &&
		f.Verified >= 0 && f.Verified < size {
		w.Fatalf("node %d has of %s with %d bytes: %+v, before: %+v", i, ref, size, f, *last)
	}
	*last = f
	return f
}

// watch asks node i how far it is until enough says so or the limit passes. It
// returns the last answer.
func (w *swarm) watch(i int, ref system.Ref, size int64, limit time.Duration,
	enough func(system.Progress) bool) (system.Progress, bool) {
	w.Helper()
	last := system.Progress{Verified: -1}
	for end := time.Now().Add(limit); ; time.Sleep(quarter) {
		if f := w.look(i, ref, size, &last); enough(f) {
			return f, true
		} else if time.Now().After(end) {
			return f, false
		}
	}
}

// never looks at several nodes at the same time, of which nothing may be true for
// as long as limit.
func (w *swarm) never(wrong func(system.Progress) bool, ref system.Ref, size int64, limit time.Duration, nodes ...int) {
	w.Helper()
	last := map[int]*system.Progress{}
	for _, i := range nodes {
		last[i] = &system.Progress{Verified: -1}
	}
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(quarter) {
		for i, before := range last {
			if f := w.look(i, ref, size, before); wrong(f) {
				w.Fatalf("node %d has what no other can have given it: %+v", i, f)
			}
		}
	}
}

func complete(f system.Progress) bool { return f.Complete }

func anything(f system.Progress) bool { return f.Complete || f.Verified > 0 }

// awaitComplete waits until node i has all, and reads it back from its disk.
func (w *swarm) awaitComplete(i int, ref system.Ref, data []byte) system.Progress {
	w.Helper()
	f, ok := w.watch(i, ref, int64(len(data)), w.limit(), complete)
	if !ok {
		w.Fatalf("node %d has not got %s (%d bytes) after %v: %+v", i, ref, len(data), w.limit(), f)
	}
	w.wantBack(i, ref, data)
	return f
}

func (w *swarm) wantBack(i int, ref system.Ref, data []byte) {
	w.Helper()
	within(w.T, "to read back", func() {
		wantContent(w.T, fmt.Sprintf("node %d: read back %s", i, ref), data, func(to io.Writer) error {
			return w.nodes[i].ReadBack(Context(w.T), ref, to)
		})
	})
}

// sizes: around the sizes of blocks and pieces.
func (w *swarm) sizes() {
	for _, size := range []int64{1, 16<<10 - 1, 16 << 10, 256 << 10, 256<<10 + 1, 5*mib + 7} {
		name := fmt.Sprintf("swarm-%d", size)
		data := Bytes(name, size)
		ref := w.publish(0, name, data)
		publisher := w.awaitComplete(0, ref, data)
		w.fetch(1, ref, 0)
		f := w.awaitComplete(1, ref, data)
		// Some count what they sent a moment later.
		p, counted := w.watch(0, ref, size, soon, func(p system.Progress) bool { return p.Sent < 0 || p.Sent >= size })
		if publisher.Received > 0 || f.Received >= 0 && f.Received < size || !counted {
			w.Errorf("%d bytes: the publisher received %d and sent %d, the other received %d",
				size, publisher.Received, p.Sent, f.Received)
		}
	}
}

func (w *swarm) threeAtOnce() {
	data := Bytes("three", 6*mib)
	ref := w.publish(3, "three", data)
	address := w.address(3)
	var at sync.WaitGroup
	for i := range 3 {
		at.Go(func() {
			if err := w.nodes[i].Fetch(Context(w.T), ref, []string{address}); err != nil {
				w.Errorf("node %d: %v", i, err)
			}
		})
	}
	at.Wait()
	for i := range 3 {
		w.awaitComplete(i, ref, data)
	}
}

func (w *swarm) severalSeeders() {
	data := Bytes("seeders", 6*mib)
	ref := w.publish(0, "seeders", data)
	for i := 1; i < 3; i++ {
		if other := w.publish(i, "seeders", data); other != ref {
			w.Fatalf("the same bytes and name are %s on node %d and %s on node 0", other, i, ref)
		}
	}
	if other := w.publish(0, "seeders", Bytes("others", 6*mib)); other == ref {
		w.Fatalf("other bytes have the same ref %s", ref)
	}
	w.fetch(3, ref, 0, 1, 2)
	w.awaitComplete(3, ref, data)
	if again := w.publish(3, "seeders", data); again != ref { // what it has already
		w.Errorf("published again, the ref is %s instead of %s", again, ref)
	}
	w.awaitComplete(3, ref, data)
}

// handedOn: a node serves what it fetched, if its system is one of those.
func (w *swarm) handedOn() {
	data := Bytes("handed on", 2*mib)
	ref := w.publish(0, "handed on", data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	w.forgets(0, ref)
	w.fetch(2, ref, 1)
	if w.Leaf {
		w.never(anything, ref, int64(len(data)), watched/2, 2)
		return
	}
	w.awaitComplete(2, ref, data)
}

// unknown: what no node has makes no progress, and nothing hangs. The ref is a
// good one: of something that its only holder has forgotten.
func (w *swarm) unknown() {
	data := Bytes("unknown", mib)
	ref := w.publish(0, "unknown", data)
	w.forgets(0, ref)
	w.fetch(1, ref)       // knows no peers
	w.fetch(3, ref, 0, 2) // knows some that have not got it
	w.never(anything, ref, int64(len(data)), watched/2, 1, 3)
	for _, i := range []int{1, 3} {
		within(w.T, "read back of what is not there", func() {
			var got bytes.Buffer
			if err := w.nodes[i].ReadBack(Context(w.T), ref, &got); err == nil && bytes.Equal(got.Bytes(), data) {
				w.Errorf("node %d: read back", i)
			}
		})
		w.forgets(i, ref)
	}
}

func (w *swarm) badRefs() {
	n := w.nodes[0]
	for _, ref := range badRefs {
		for how, call := range map[string]func() error{
			"fetch":     func() error { return n.Fetch(Context(w.T), ref, nil) },
			"progress":  func() error { _, err := n.Progress(Context(w.T), ref); return err },
			"read back": func() error { return n.ReadBack(Context(w.T), ref, io.Discard) },
			"forget":    func() error { return n.Forget(Context(w.T), ref) },
		} {
			failsSoon(w.T, fmt.Sprintf("%s of malformed ref %q", how, ref), call, system.ErrBadRef, system.ErrNotFound)
		}
	}
}

func (w *swarm) badReaders() {
	badReaders(w.T, w.nodes[0].Publish)
	data := Bytes("after", mib)
	w.wantBack(0, w.publish(0, "after", data), data)
}

// forget frees the disk, of one node alone, and the content can be had again.
func (w *swarm) forget() {
	const size = 8 * mib
	data := Bytes("forget", size)
	ref := w.publish(0, "forget", data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	before := w.used()
	w.forgets(1, ref)
	if freed := before - w.used(); freed < size/10*9 || freed > size*3/2 {
		w.Errorf("to forget %d bytes freed %d", size, freed)
	}
	_, err := w.nodes[1].Progress(Context(w.T), ref)
	fails(w.T, "progress of what was forgotten", err, system.ErrNotFound)
	fails(w.T, "read back of what was forgotten", w.nodes[1].ReadBack(Context(w.T), ref, io.Discard),
		system.ErrNotFound)
	w.wantBack(0, ref, data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
}

// openFiles: nodes live through hundreds of trials, each with a probe, a content
// and its removal; none of them may leave files, sockets or pipes open.
func (w *swarm) openFiles() {
	const rounds, slack = 5, 8 // slack: connections and threads' files come and go
	var first []int
	for round := range rounds {
		data := Bytes(fmt.Sprintf("open files %d", round), mib)
		for _, n := range w.nodes {
			if h, ok := n.(system.Healther); ok {
				must(w.T, "health", h.Health(Context(w.T)))
			}
		}
		ref := w.publish(0, "open files", data)
		for i := range w.nodes[1:] {
			w.fetch(i+1, ref, 0)
		}
		for i := range w.nodes[1:] {
			w.awaitComplete(i+1, ref, data)
		}
		for i := range w.nodes {
			w.forgets(i, ref)
		}
		if round == 0 {
			first = w.descriptors()
		}
	}
	last := w.descriptors()
	w.Logf("open files of each process: %d after the first round, %d after %d", first, last, rounds)
	for i := range last {
		if last[i] > first[i]+slack {
			w.Errorf("process %d has %d open files after %d rounds, %d after the first", i, last[i], rounds, first[i])
		}
	}
}

// descriptors are the open files of the nodes' processes, each with its descendants.
func (w *swarm) descriptors() []int {
	var all []int
	for _, p := range processes(w.c.Nodes()...) {
		open := 0
		for _, member := range family(p) {
			if proc, err := procfs.NewProc(member.PID); err == nil {
				n, _ := proc.FileDescriptorsLen() // a child that has ended has none
				open += n
			}
		}
		all = append(all, open)
	}
	return all
}

// used is the space that the nodes' files take on disk, in bytes.
func (w *swarm) used() (sum int64) {
	w.files(func(_ string, info fs.FileInfo) { sum += info.Sys().(*syscall.Stat_t).Blocks * 512 })
	return sum
}

// files visits those of all nodes; one that vanishes meanwhile is left out.
func (w *swarm) files(visit func(path string, info fs.FileInfo)) {
	w.Helper()
	must(w.T, "walk", filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				visit(path, info)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
}

func (w *swarm) stop() {
	procs := processes(w.c.Nodes()...)
	must(w.T, "stop", w.c.Stop(Context(w.T)))
	wantEnded(w.T, procs)
	failsSoon(w.T, "a task for a node that is gone", func() error { return w.nodes[0].Fetch(Context(w.T), "x", nil) })
}

// half is the content of cases that stop in the middle.
const half = 8 * mib

// toHalf starts a slow fetch and returns when about a half is there.
func (w *swarm) toHalf(leecher, seeder int) (system.Ref, []byte) {
	w.Helper()
	data := Bytes("half", half)
	ref := w.publish(seeder, "half", data)
	w.fetch(leecher, ref, seeder)
	f, ok := w.watch(leecher, ref, half, w.limit(), func(f system.Progress) bool { return f.Verified >= half*4/10 })
	if !ok || f.Complete {
		w.Fatalf("half of it was never there: %+v", f)
	}
	return ref, data
}

func (w *swarm) kill(i int) {
	w.Helper()
	procs := slices.DeleteFunc(slices.Clone(w.nodes[i].Processes()), func(p testbed.Process) bool {
		return p.Host().Name() != w.hosts[i].Name() // a client's, which lives on
	})
	if len(procs) == 0 {
		w.Errorf("node %d has no process to kill", i)
	}
	must(w.T, "kill", w.nodes[i].(system.Restarter).Kill(Context(w.T)))
	wantEnded(w.T, procs)
}

func (w *swarm) restart(i int, keep bool) {
	w.Helper()
	before := w.address(i)
	must(w.T, "restart", w.nodes[i].(system.Restarter).Restart(Context(w.T), keep))
	if after := w.address(i); after != before || len(w.nodes[i].Processes()) == 0 {
		w.Errorf("node %d was at %s and is at %s after a restart, with %d processes", i, before, after,
			len(w.nodes[i].Processes()))
	}
}

// publishAgain gives a seeder that was restarted its content.
func (w *swarm) publishAgain(i int, name string, data []byte, ref system.Ref) {
	w.Helper()
	w.restart(i, true)
	if again := w.publish(i, name, data); again != ref {
		w.Fatalf("published again as %s, before as %s", again, ref)
	}
}

func (w *swarm) leecherKilled(keep bool) {
	ref, data := w.toHalf(1, 0)
	w.kill(1)
	failsSoon(w.T, "progress of a node that was killed", func() error {
		_, err := w.nodes[1].Progress(Context(w.T), ref)
		if errors.Is(err, system.ErrNotFound) {
			w.Error(err)
		}
		return err
	})
	w.restart(1, keep)
	if _, err := w.nodes[1].Progress(Context(w.T), ref); !keep {
		fails(w.T, "progress of a node without its data", err, system.ErrNotFound)
	}
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	// How much went twice: what was on its way, or all that was there.
	sent := w.look(0, ref, half, &system.Progress{}).Sent
	if sent >= 0 && keep != (sent <= half*135/100) {
		w.Errorf("data kept: %v, and %d bytes were sent of %d", keep, sent, half)
	}
}

// seederKilled: no node is ever complete without the rest, every call returns,
// and it goes on when the seeder is back.
func (w *swarm) seederKilled() {
	ref, data := w.toHalf(1, 0)
	w.fetch(2, ref, 0, 1)
	w.kill(0)
	w.never(complete, ref, half, watched, 1, 2)
	failsSoon(w.T, "publish by a node that was killed", func() error {
		_, err := w.nodes[0].Publish(Context(w.T), "more", 1, bytes.NewReader([]byte{1}))
		return err
	})
	if h, ok := w.nodes[0].(system.Healther); ok {
		failsSoon(w.T, "health of a node that was killed", func() error { return h.Health(Context(w.T)) })
	}
	w.publishAgain(0, "half", data, ref)
	for _, i := range []int{1, 2} {
		w.fetch(i, ref, 0, 3-i)
	}
	for _, i := range []int{1, 2} {
		w.awaitComplete(i, ref, data)
	}
}

// spoilt: bytes that changed on a node's disk while it was down are not
// complete after its start, and are fetched again.
func (w *swarm) spoilt() {
	if !w.Plain {
		w.Skip("the bytes of a content are not found on the system's disk")
	}
	const size = 4 * mib
	data := Bytes("spoilt", size)
	ref := w.publish(0, "spoilt", data)
	seeders := w.holders(data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	w.kill(1)
	w.kill(0)
	leechers := w.holders(data)
	maps.DeleteFunc(leechers, func(path string, _ int64) bool { return seeders[path] > 0 })
	if len(leechers) == 0 {
		w.Fatal("the content was not found on the leecher's disk")
	}
	for path, at := range leechers {
		must(w.T, "chmod", os.Chmod(path, 0o600)) // some stores keep their files read-only
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(w.T, "open", err)
		_, err = f.WriteAt(make([]byte, 64), at-1)
		must(w.T, "spoil", errors.Join(err, f.Close()))
	}
	w.restart(1, true)
	w.fetch(1, ref)
	w.never(complete, ref, size, watched/2, 1)
	w.publishAgain(0, "spoilt", data, ref)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
}

// holders are the files that hold a run of bytes from the middle of data, and where
// (from 1).
func (w *swarm) holders(data []byte) map[string]int64 {
	w.Helper()
	needle := data[len(data)/2+1000 : len(data)/2+1064]
	found := map[string]int64{}
	w.files(func(path string, _ fs.FileInfo) {
		b, _ := os.ReadFile(path) // else vanished
		if at := bytes.Index(b, needle); at >= 0 {
			found[path] = int64(at) + 1
		}
	})
	return found
}
