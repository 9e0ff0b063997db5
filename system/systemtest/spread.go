package systemtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

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
	// Slow are options with which a node sends at most about 2 MB/s: so that
	// there is a moment when half of a content is there. Nil: those cases have
	// links of that rate instead, in namespaces.
	Slow system.Options
	// Plain: the store keeps content in whole runs of bytes, so that the test
	// finds them on disk and can spoil them.
	Plain bool
	// Leaf: a node does not pass on what it fetched (a baseline).
	Leaf bool
	// Namespaces: its nodes are started in network namespaces only.
	Namespaces bool
	// MayNotRecover: a leecher that was killed may find nobody any more when it is
	// started again. It is then never complete: the outcome is stalled.
	MayNotRecover bool
	// Fetching is the limit of a fetch of a few MiB; 0: a minute.
	Fetching time.Duration
}

// quarter is a poll interval: a node is asked four times a second.
const quarter = 250 * time.Millisecond

// watched is how long a node is looked at that must not come to an end.
const watched = 6 * time.Second

// swarm is a deployment under test.
type swarm struct {
	t     *testing.T
	s     Swarm
	c     system.Cluster
	dir   string
	hosts []testbed.Host // of the nodes
	nodes []system.Member
}

// RunSwarm runs the cases of a [system.Member]. Those with a swarm of their own
// run side by side: nearly all of their time is waiting for a slow node.
func RunSwarm(t *testing.T, s Swarm) {
	name := s.Daemon
	if name == "" {
		name = s.System.Info().Name
	}
	Need(t, name, s.System.Check(t.Context(), s.Options))
	apart := func(name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
	apart("shared", func(t *testing.T) {
		w := startSwarm(t, s, nil, 4)
		sub := func(name string, f func(*swarm)) {
			t.Run(name, func(t *testing.T) {
				v := *w
				v.t = t
				f(&v)
			})
		}
		sub("addresses", (*swarm).addresses)
		sub("sizes", (*swarm).sizes)
		sub("three at once", (*swarm).threeAtOnce)
		sub("several seeders", (*swarm).severalSeeders)
		sub("handed on", (*swarm).handedOn)
		sub("unknown", (*swarm).unknown)
		sub("bad refs", (*swarm).badRefs)
		sub("bad readers", (*swarm).badReaders)
		sub("forget", (*swarm).forget)
		sub("open files", (*swarm).openFiles)
		sub("memory", (*swarm).memory)
		sub("stop", (*swarm).stop)
	})
	for _, keep := range []bool{true, false} {
		apart(fmt.Sprintf("leecher killed, data kept=%v", keep), func(t *testing.T) {
			startSlow(t, s, 2).leecherKilled(keep)
		})
	}
	apart("only seeder killed", func(t *testing.T) { startSlow(t, s, 3).seederKilled() })
	apart("spoilt on disk", func(t *testing.T) {
		if !s.Plain {
			t.Skip("the bytes of a content are not found on the system's disk")
		}
		startSwarm(t, s, nil, 2).spoilt()
	})
	apart("port in use", func(t *testing.T) { swarmPortInUse(t, s) })
}

// slow is the rate of a slow node, bit/s.
const slow = 16e6

// startSlow brings up n nodes that send slowly.
func startSlow(t *testing.T, s Swarm, n int) *swarm {
	t.Helper()
	if s.Slow != nil {
		return startSwarm(t, s, s.Slow, n)
	}
	return startSwarmOn(t, s, nil, slowHosts(t, slow, n+1))
}

// startSwarm brings up n nodes and a host for the client.
func startSwarm(t *testing.T, s Swarm, more system.Options, n int) *swarm {
	t.Helper()
	return startSwarmOn(t, s, more, HostsOf(t, testbed.Options{Plain: !s.Namespaces}, n+1))
}

func startSwarmOn(t *testing.T, s Swarm, more system.Options, hosts []testbed.Host) *swarm {
	t.Helper()
	n := len(hosts) - 1
	w := &swarm{t: t, s: s, dir: t.TempDir(), hosts: hosts[:n]}
	var err error
	if w.c, err = s.deployment(w.dir, more, hosts).Begin(Context(t), s.System, system.Start); err != nil {
		t.Fatal(err)
	}
	StopAtEnd(t, w.c)
	for i, node := range w.c.Nodes() {
		sp, ok := node.(system.Member)
		if !ok {
			t.Fatalf("node %d is no Member", i)
		}
		w.nodes = append(w.nodes, sp)
	}
	if len(w.nodes) != n {
		t.Fatalf("%d nodes on %d hosts", len(w.nodes), n)
	}
	return w
}

// deployment has the client on the last of hosts.
func (s Swarm) deployment(dir string, more system.Options, hosts []testbed.Host) system.Deployment {
	opt := system.Options{}
	maps.Copy(opt, s.Options)
	maps.Copy(opt, more)
	last := len(hosts) - 1
	return system.Deployment{Hosts: hosts[:last], Client: hosts[last], Dir: dir, Options: opt, Swarm: true}
}

func (w *swarm) limit() time.Duration {
	if w.s.Fetching > 0 {
		return w.s.Fetching
	}
	return time.Minute
}

func (w *swarm) publish(i int, name string, data []byte) system.Ref {
	w.t.Helper()
	ref, err := w.nodes[i].Publish(Context(w.t), name, int64(len(data)), bytes.NewReader(data))
	if err != nil || ref == "" {
		w.t.Fatalf("node %d: publish %q (%d bytes): ref %q, %v", i, name, len(data), ref, err)
	}
	return ref
}

func (w *swarm) address(i int) string {
	w.t.Helper()
	a, err := w.nodes[i].Address(Context(w.t))
	if err != nil {
		w.t.Fatalf("node %d: address: %v", i, err)
	}
	return a
}

func (w *swarm) fetch(i int, ref system.Ref, from ...int) {
	w.t.Helper()
	var addresses []string
	for _, k := range from {
		addresses = append(addresses, w.address(k))
	}
	within(w.t, "to give a node a task", func() {
		if err := w.nodes[i].Fetch(Context(w.t), ref, addresses); err != nil {
			w.t.Fatalf("node %d: fetch %s: %v", i, ref, err)
		}
	})
}

func (w *swarm) fetched(i int, ref system.Ref) (f system.Progress) {
	w.t.Helper()
	within(w.t, "to say how far it is", func() {
		var err error
		if f, err = w.nodes[i].Progress(Context(w.t), ref); err != nil {
			w.t.Fatalf("node %d: fetched %s: %v", i, ref, err)
		}
	})
	return f
}

// watcher looks at what a node says of a content, and holds it to be possible.
type watcher struct {
	*swarm
	node int
	ref  system.Ref
	size int64
	last system.Progress
}

func (w *swarm) watcher(i int, ref system.Ref, size int64) *watcher {
	return &watcher{swarm: w, node: i, ref: ref, size: size, last: system.Progress{Size: -1, Verified: -1}}
}

func (o *watcher) look() system.Progress {
	o.t.Helper()
	f := o.fetched(o.node, o.ref)
	switch {
	case f.Size != o.size && f.Size != -1, o.last.Size >= 0 && f.Size != o.last.Size:
		o.t.Fatalf("node %d says that %s has %d bytes (before: %d), it has %d", o.node, o.ref, f.Size, o.last.Size, o.size)
	case f.Verified < o.last.Verified:
		o.t.Errorf("node %d had verified %d bytes of %s, and now %d", o.node, o.last.Verified, o.ref, f.Verified)
	case f.Verified > o.size, f.Written > o.size:
		o.t.Errorf("node %d says it has more of %s than its %d bytes: %+v", o.node, o.ref, o.size, f)
	case f.Complete && (f.Verified >= 0 && f.Verified < o.size || f.Size != o.size):
		o.t.Errorf("node %d is complete with %s, and says %+v; it has %d bytes", o.node, o.ref, f, o.size)
	}
	o.last = f
	return f
}

// watch asks node i how far it is until enough says so or the limit passes. It
// returns the last answer.
func (w *swarm) watch(i int, ref system.Ref, size int64, limit time.Duration, enough func(system.Progress) bool) (system.Progress, bool) {
	w.t.Helper()
	o := w.watcher(i, ref, size)
	for end := time.Now().Add(limit); ; time.Sleep(quarter) {
		f := o.look()
		if enough(f) {
			return f, true
		}
		if time.Now().After(end) {
			return f, false
		}
	}
}

// never looks at several nodes at the same time, of which nothing may be true for
// as long as limit.
func (w *swarm) never(wrong func(system.Progress) bool, ref system.Ref, size int64, limit time.Duration, nodes ...int) {
	w.t.Helper()
	var all []*watcher
	for _, i := range nodes {
		all = append(all, w.watcher(i, ref, size))
	}
	for end := time.Now().Add(limit); ; time.Sleep(quarter) {
		for _, o := range all {
			if f := o.look(); wrong(f) {
				w.t.Errorf("node %d has what nobody can have given it: %+v", o.node, f)
				return
			}
		}
		if time.Now().After(end) {
			return
		}
	}
}

func complete(f system.Progress) bool { return f.Complete }

func anything(f system.Progress) bool { return f.Complete || f.Verified > 0 }

// awaitComplete waits until node i has all, and reads it back from its disk.
func (w *swarm) awaitComplete(i int, ref system.Ref, data []byte) system.Progress {
	w.t.Helper()
	f, ok := w.watch(i, ref, int64(len(data)), w.limit(), complete)
	if !ok {
		w.t.Fatalf("node %d has not got %s (%d bytes) after %v: %+v", i, ref, len(data), w.limit(), f)
	}
	w.wantBack(i, ref, data)
	return f
}

func (w *swarm) wantBack(i int, ref system.Ref, data []byte) {
	w.t.Helper()
	var got bytes.Buffer
	within(w.t, "to read back", func() {
		if err := w.nodes[i].ReadBack(Context(w.t), ref, &got); err != nil {
			w.t.Errorf("node %d: read back %s: %v", i, ref, err)
		} else if !bytes.Equal(got.Bytes(), data) {
			w.t.Errorf("node %d: read back %s: %d bytes that differ from the %d published", i, ref, got.Len(), len(data))
		}
	})
}

func (w *swarm) addresses() {
	seen := map[string]bool{}
	can := w.s.System.Info().Can
	for i := range w.nodes {
		for _, word := range system.Abilities(w.nodes[i]) {
			if !slices.Contains(can, word) {
				w.t.Errorf("node %d can %q, which Info.Can does not have", i, word)
			}
		}
		a := w.address(i)
		if a == "" || seen[a] {
			w.t.Errorf("node %d: address %q: empty, or another's", i, a)
		}
		seen[a] = true
	}
	if err := w.nodes[0].Connect(Context(w.t), w.address(1)); err != nil {
		w.t.Errorf("connect: %v", err)
	}
	within(w.t, "a malformed address", func() {
		if err := w.nodes[0].Connect(Context(w.t), "no address"); err == nil {
			w.t.Error("connected to no address")
		}
	})
	if len(processes(w.c.Nodes())) < len(w.nodes) {
		w.t.Errorf("%d processes of %d nodes", len(processes(w.c.Nodes())), len(w.nodes))
	}
}

// sizes: around the sizes of blocks and pieces.
func (w *swarm) sizes() {
	for _, size := range []int64{1, 16<<10 - 1, 16 << 10, 256 << 10, 256<<10 + 1, 5*mib + 7} {
		name := fmt.Sprintf("swarm-%d", size)
		data := Bytes(name, size)
		ref := w.publish(0, name, data)
		f := w.awaitComplete(0, ref, data)
		if f.Received > 0 {
			w.t.Errorf("%d bytes: the publisher says that it received %d", size, f.Received)
		}
		w.fetch(1, ref, 0)
		if f := w.awaitComplete(1, ref, data); f.Received >= 0 && f.Received < size {
			w.t.Errorf("%d bytes: received are %d", size, f.Received)
		}
		if f := w.fetched(0, ref); f.Sent >= 0 && f.Sent < size {
			w.t.Errorf("%d bytes: sent are %d", size, f.Sent)
		}
	}
}

func (w *swarm) threeAtOnce() {
	data := Bytes("three", 6*mib)
	ref := w.publish(3, "three", data)
	var at sync.WaitGroup
	for i := range 3 {
		at.Go(func() {
			if err := w.nodes[i].Fetch(Context(w.t), ref, []string{w.address(3)}); err != nil {
				w.t.Errorf("node %d: %v", i, err)
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
			w.t.Fatalf("the same bytes and name are %s on node %d and %s on node 0", other, i, ref)
		}
	}
	if other := w.publish(0, "seeders", Bytes("others", 6*mib)); other == ref {
		w.t.Fatalf("other bytes have the same ref %s", ref)
	}
	w.fetch(3, ref, 0, 1, 2)
	w.awaitComplete(3, ref, data)
	if again := w.publish(3, "seeders", data); again != ref { // what it has already
		w.t.Errorf("published again, the ref is %s instead of %s", again, ref)
	}
	w.awaitComplete(3, ref, data)
}

// handedOn: a node serves what it fetched, if its system is one of those.
func (w *swarm) handedOn() {
	data := Bytes("handed on", 2*mib)
	ref := w.publish(0, "handed on", data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	if err := w.nodes[0].Forget(Context(w.t), ref); err != nil {
		w.t.Fatal(err)
	}
	w.fetch(2, ref, 1)
	if w.s.Leaf {
		w.never(anything, ref, int64(len(data)), watched/2, 2)
		return
	}
	w.awaitComplete(2, ref, data)
}

// unknown: what nobody has makes no progress, and nothing hangs. The ref is a
// good one: of something that its only holder has forgotten.
func (w *swarm) unknown() {
	data := Bytes("unknown", mib)
	ref := w.publish(0, "unknown", data)
	if err := w.nodes[0].Forget(Context(w.t), ref); err != nil {
		w.t.Fatal(err)
	}
	// Node 1 knows no peers, node 3 those that have not got it.
	from := map[int][]string{1: nil, 3: {w.address(0), w.address(2)}}
	for i, peers := range from {
		within(w.t, "fetch of what nobody has", func() {
			if err := w.nodes[i].Fetch(Context(w.t), ref, peers); err != nil {
				w.t.Fatalf("node %d: fetch from %v: %v", i, peers, err)
			}
		})
	}
	w.never(anything, ref, int64(len(data)), watched/2, 1, 3)
	for i := range from {
		within(w.t, "read back of what is not there", func() {
			var got bytes.Buffer
			if err := w.nodes[i].ReadBack(Context(w.t), ref, &got); err == nil && bytes.Equal(got.Bytes(), data) {
				w.t.Errorf("node %d: read back", i)
			} else if err == nil && got.Len() == len(data) {
				w.t.Logf("node %d: read back gives %d bytes of nothing", i, got.Len())
			}
		})
		if err := w.nodes[i].Forget(Context(w.t), ref); err != nil {
			w.t.Errorf("node %d: forget: %v", i, err)
		}
	}
}

func (w *swarm) badRefs() {
	n := w.nodes[0]
	for _, ref := range []system.Ref{"", "/", "../../etc/passwd", "a\x00b", "new\nline", "?x=y", "http://127.0.0.1:1/"} {
		for how, call := range map[string]func() error{
			"fetch":     func() error { return n.Fetch(Context(w.t), ref, nil) },
			"fetched":   func() error { _, err := n.Progress(Context(w.t), ref); return err },
			"read back": func() error { return n.ReadBack(Context(w.t), ref, io.Discard) },
			"forget":    func() error { return n.Forget(Context(w.t), ref) },
		} {
			within(w.t, how+" of a malformed ref", func() {
				if err := call(); !errors.Is(err, system.ErrBadRef) && !errors.Is(err, system.ErrNotFound) {
					w.t.Errorf("%s of malformed ref %q: %v, want ErrBadRef or ErrNotFound", how, ref, err)
				}
			})
		}
	}
}

func (w *swarm) badReaders() {
	testBadReadersOf(w.t, w.nodes[0].Publish)
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
	before := used(w.t, w.dir)
	if err := w.nodes[1].Forget(Context(w.t), ref); err != nil {
		w.t.Fatal(err)
	}
	if freed := before - used(w.t, w.dir); freed < size/10*9 || freed > size*3/2 {
		w.t.Errorf("to forget %d bytes freed %d", size, freed)
	}
	if _, err := w.nodes[1].Progress(Context(w.t), ref); !errors.Is(err, system.ErrNotFound) {
		w.t.Errorf("fetched of what was forgotten: %v, want ErrNotFound", err)
	}
	if err := w.nodes[1].ReadBack(Context(w.t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
		w.t.Errorf("read back of what was forgotten: %v, want ErrNotFound", err)
	}
	w.wantBack(0, ref, data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
}

// openFiles: nodes live through hundreds of trials, each with a probe, a content
// and its removal; none of them may leave files, sockets or pipes open.
func (w *swarm) openFiles() {
	const rounds, slack = 5, 8 // slack: connections and threads' files come and go
	var first []int
	for i := range rounds {
		data := Bytes(fmt.Sprintf("open files %d", i), mib)
		for k, n := range w.nodes {
			if h, ok := n.(system.Healther); ok {
				if err := h.Health(Context(w.t)); err != nil {
					w.t.Fatalf("node %d: health: %v", k, err)
				}
			}
		}
		ref := w.publish(0, "open files", data)
		for k := 1; k < len(w.nodes); k++ {
			w.fetch(k, ref, 0)
		}
		for k := 1; k < len(w.nodes); k++ {
			w.awaitComplete(k, ref, data)
		}
		for k, n := range w.nodes {
			if err := n.Forget(Context(w.t), ref); err != nil {
				w.t.Fatalf("node %d: forget: %v", k, err)
			}
		}
		if i == 0 {
			first = w.descriptors()
		}
	}
	last := w.descriptors()
	w.t.Logf("open files of each process: %d after the first round, %d after %d", first, last, rounds)
	for i := range last {
		if last[i] > first[i]+slack {
			w.t.Errorf("process %d has %d open files after %d rounds, %d after the first", i, last[i], rounds, first[i])
		}
	}
}

// descriptors are the open files of the nodes' processes, each with its
// descendants.
func (w *swarm) descriptors() []int {
	var all []int
	for _, p := range processes(w.c.Nodes()) {
		groups, open := family(p.PID()), 0
		dirs, _ := filepath.Glob("/proc/[0-9]*/fd")
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
			if group, err := syscall.Getpgid(pid); err != nil || !slices.Contains(groups, group) {
				continue
			}
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a child that has ended has none
				w.t.Fatal(err)
			}
			open += len(entries)
		}
		all = append(all, open)
	}
	return all
}

// used is the space that files below dir take on disk, in bytes.
func used(t *testing.T, dir string) (sum int64) {
	t.Helper()
	walk(t, dir, func(_ string, info fs.FileInfo) {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += s.Blocks * 512
		}
	})
	return sum
}

// walk visits the files below dir; one that vanishes meanwhile is left out.
func walk(t *testing.T, dir string, visit func(path string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
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
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *swarm) stop() {
	procs := processes(w.c.Nodes())
	if err := w.c.Stop(Context(w.t)); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	for _, p := range procs {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			w.t.Errorf("process group %d is there after stop: %v", p.PID(), err)
		}
	}
	within(w.t, "a node that is gone", func() {
		if _, err := w.nodes[0].Address(Context(w.t)); err != nil {
			w.t.Logf("address: %v", err)
		}
		if err := w.nodes[0].Fetch(Context(w.t), "x", nil); err == nil {
			w.t.Error("a node that is gone takes a task")
		}
	})
}

// half is the content of cases that stop in the middle.
const half = 12 * mib

// toHalf starts a slow fetch and returns when about a half is there.
func (w *swarm) toHalf(leecher, seeder int) (system.Ref, []byte) {
	w.t.Helper()
	data := Bytes("half", half)
	ref := w.publish(seeder, "half", data)
	w.fetch(leecher, ref, seeder)
	f, ok := w.watch(leecher, ref, half, w.limit(), func(f system.Progress) bool { return f.Verified >= half*4/10 })
	if !ok || f.Complete {
		w.t.Fatalf("half of it was never there: %+v", f)
	}
	return ref, data
}

func (w *swarm) restarter(i int) system.Restarter {
	w.t.Helper()
	r, ok := w.nodes[i].(system.Restarter)
	if !ok {
		w.t.Skip("a node cannot be started again")
	}
	return r
}

func (w *swarm) kill(i int) {
	w.t.Helper()
	procs := w.nodes[i].Processes()
	if err := w.restarter(i).Kill(Context(w.t)); err != nil {
		w.t.Fatalf("kill node %d: %v", i, err)
	}
	for _, p := range procs {
		if p.Host() != w.hosts[i] {
			continue // a client's, which lives on
		}
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			w.t.Errorf("process group %d of node %d is there after kill: %v", p.PID(), i, err)
		}
	}
}

func (w *swarm) restart(i int, keep bool) {
	w.t.Helper()
	before := w.address(i)
	if err := w.restarter(i).Restart(Context(w.t), keep); err != nil {
		w.t.Fatalf("restart node %d: %v", i, err)
	}
	if after := w.address(i); after != before {
		w.t.Errorf("node %d was at %s and is at %s after a restart", i, before, after)
	}
	if len(w.nodes[i].Processes()) == 0 {
		w.t.Errorf("node %d has no process after a restart", i)
	}
}

func (w *swarm) leecherKilled(keep bool) {
	w.restarter(1)
	ref, data := w.toHalf(1, 0)
	w.kill(1)
	within(w.t, "a node that was killed", func() {
		if _, err := w.nodes[1].Progress(Context(w.t), ref); err == nil || errors.Is(err, system.ErrNotFound) {
			w.t.Errorf("fetched of a node that was killed: %v", err)
		}
	})
	w.restart(1, keep)
	if f, err := w.nodes[1].Progress(Context(w.t), ref); !keep && !errors.Is(err, system.ErrNotFound) {
		w.t.Errorf("a node without its data knows of %s: %+v, %v", ref, f, err)
	}
	w.fetch(1, ref, 0)
	if f, ok := w.watch(1, ref, int64(len(data)), w.limit(), complete); !ok && w.s.MayNotRecover {
		if f.Trouble == "" {
			w.t.Errorf("it does not go on, and does not say why: %+v", f)
		}
		within(w.t, "to read back what is not all there", func() {
			if err := w.nodes[1].ReadBack(Context(w.t), ref, io.Discard); err == nil {
				w.t.Error("what is not all there is read back")
			}
		})
		return
	}
	w.awaitComplete(1, ref, data)
	// How much went twice: what was on its way, or all that was there.
	sent := w.fetched(0, ref).Sent
	if keep && sent > half*135/100 {
		w.t.Errorf("with its data kept, %d bytes were sent of %d", sent, half)
	}
	if !keep && sent >= 0 && sent < half*135/100 {
		w.t.Errorf("with its data lost, only %d bytes were sent of %d", sent, half)
	}
}

// seederKilled: nobody is ever complete without the rest, every call returns,
// and it goes on when the seeder is back.
func (w *swarm) seederKilled() {
	w.restarter(0)
	ref, data := w.toHalf(1, 0)
	w.fetch(2, ref, 0, 1)
	w.kill(0)
	w.never(complete, ref, half, watched, 1, 2)
	within(w.t, "a seeder that was killed", func() {
		if _, err := w.nodes[0].Publish(Context(w.t), "more", 1, bytes.NewReader([]byte{1})); err == nil {
			w.t.Error("a node that was killed publishes")
		}
		if h, ok := w.nodes[0].(system.Healther); ok && h.Health(Context(w.t)) == nil {
			w.t.Error("a node that was killed is healthy")
		}
	})
	w.restart(0, true)
	if again := w.publish(0, "half", data); again != ref {
		w.t.Fatalf("published again as %s, before as %s", again, ref)
	}
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
	w.restarter(1)
	const size = 4 * mib
	data := Bytes("spoilt", size)
	ref := w.publish(0, "spoilt", data)
	seeders := holders(w.t, w.dir, data)
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
	w.kill(1)
	w.kill(0)
	spoilt := 0
	for path, at := range holders(w.t, w.dir, data) {
		if _, is := seeders[path]; is {
			continue
		}
		spoil(w.t, path, at)
		spoilt++
	}
	if spoilt == 0 {
		w.t.Fatal("the content was not found on the leecher's disk")
	}
	w.restart(1, true)
	w.fetch(1, ref)
	w.never(complete, ref, size, watched/2, 1)
	w.restart(0, true)
	if again := w.publish(0, "spoilt", data); again != ref {
		w.t.Fatalf("published again as %s, before as %s", again, ref)
	}
	w.fetch(1, ref, 0)
	w.awaitComplete(1, ref, data)
}

// holders are the files below dir that hold a run of bytes from the middle of
// data, and where.
func holders(t *testing.T, dir string, data []byte) map[string]int64 {
	t.Helper()
	needle := data[len(data)/2+1000 : len(data)/2+1064]
	found := map[string]int64{}
	walk(t, dir, func(path string, _ fs.FileInfo) {
		b, err := os.ReadFile(path)
		if err != nil {
			return // vanished
		}
		if at := bytes.Index(b, needle); at >= 0 {
			found[path] = int64(at)
		}
	})
	return found
}

// spoil changes 64 bytes of a file and leaves its length.
func spoil(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(path, 0o600) == nil {
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(b)
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}
