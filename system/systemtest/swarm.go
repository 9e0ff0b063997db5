package systemtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Swarm is one system whose nodes get content from each other, in one configuration.
type Swarm struct {
	System  system.System
	Options system.Options
	// Plain is set if the store keeps content in contiguous bytes, so that the test can find and
	// corrupt them on disk.
	Plain bool
	// Leaf is set if a node does not pass on fetched content (a baseline).
	Leaf bool
	// Namespaces is set if its nodes are started only in network namespaces.
	Namespaces bool
	// Brief is set if another suite of the same system kills its nodes.
	Brief bool
}

const (
	fetching = time.Minute           // limit for a fetch of a few MiB
	often    = 50 * time.Millisecond // between polls of a node
	watched  = 2 * time.Second       // how long a node is observed that must not complete
	slow     = 16e6                  // rate of a slow link, bit/s: slow enough to observe a half-fetched content
)

// swarm is a deployment under test.
type swarm struct {
	kit
	Swarm
	c     system.Cluster
	dir   string
	hosts []testbed.Host // of the nodes
	nodes []system.Member
	shape func(rate float64) // of links that are slow
}

// RunSwarm runs the cases of a [system.Member]. Cases with their own swarm run in parallel: most of
// their time is spent waiting for a slow node.
func RunSwarm(t *testing.T, s Swarm) {
	Need(t, s.System, s.Options)
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		w := s.start(t, s.hosts(t, 4))
		for _, c := range []struct {
			name string
			body func(*swarm)
		}{
			{"abilities", func(w *swarm) { w.wantAbilities(s.System, w.c, nil) }},
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
	for name, body := range map[string]func(*testing.T){
		"leecher killed, data kept": func(t *testing.T) { s.startSlow(t, 3).leecherKilled(true) },
		"leecher killed, data lost": func(t *testing.T) { s.startSlow(t, 3).leecherKilled(false) },
		"only seeder killed":        func(t *testing.T) { s.startSlow(t, 4).seederKilled() },
		"spoilt on disk":            func(t *testing.T) { s.start(t, s.hosts(t, 2)).spoilt() },
		"port in use":               func(t *testing.T) { kit{t}.wantPortInUse(s.System, s.deployment(t, s.hosts(t, 2))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t)
		})
	}
}

// hosts returns hosts for n nodes and a client.
func (s Swarm) hosts(t *testing.T, n int) []testbed.Host {
	return HostsOf(t, testbed.Options{Plain: !s.Namespaces}, n+1)
}

// deployment returns a deployment whose client is on the last host.
func (s Swarm) deployment(t *testing.T, hosts []testbed.Host) system.Deployment {
	d := deployment(t, hosts, s.Options)
	d.Swarm = true
	return d
}

// start starts a node on each of the hosts except the last.
func (s Swarm) start(t *testing.T, hosts []testbed.Host) *swarm {
	d := s.deployment(t, hosts)
	w := &swarm{kit: kit{t}, Swarm: s, dir: d.Dir, hosts: d.Hosts}
	w.c = w.bringUp(s.System, system.Start, d, 2*time.Minute)
	for _, node := range w.c.Nodes() {
		w.nodes = append(w.nodes, node.(system.Member))
	}
	if n := len(d.Hosts); len(w.nodes) != n || len(processes(w.c.Nodes()...)) < n {
		t.Fatalf("%d nodes, %d processes on %d hosts", len(w.nodes), len(processes(w.c.Nodes()...)), n)
	}
	return w
}

// startSlow starts nodes with slow links, until [swarm.hurry].
func (s Swarm) startSlow(t *testing.T, n int) *swarm {
	hosts, shape := SlowHosts(t, slow, n)
	w := s.start(t, hosts)
	w.shape = shape
	return w
}

// hurry makes slow links fast, once what had to be interrupted was: the rest needs no time.
func (w *swarm) hurry() { w.shape(10 * slow) }

// publish publishes the content of that name.
func (w *swarm) publish(i int, name string, size int64) object {
	return w.store(w.nodes[i].Publish, name, Bytes(name, size))
}

func (w *swarm) address(i int) string {
	a, err := w.nodes[i].Address(w.ctx())
	w.must("address", err)
	return a
}

func (w *swarm) fetch(i int, o object, from ...int) {
	var addresses []string
	for _, k := range from {
		addresses = append(addresses, w.address(k))
	}
	defer w.soon("to give a node a task")()
	w.must(fmt.Sprintf("node %d: fetch %s", i, o.ref), w.nodes[i].Fetch(w.ctx(), o.ref, addresses))
}

func (w *swarm) forgets(i int, o object) {
	w.must(fmt.Sprintf("node %d: forget", i), w.nodes[i].Forget(w.ctx(), o.ref))
}

// look polls node i and checks that its progress is possible after last.
func (w *swarm) look(i int, o object, last system.Progress) system.Progress {
	defer w.soon("to say how far it is")()
	f, err := w.nodes[i].Progress(w.ctx(), o.ref)
	w.must(fmt.Sprintf("node %d: progress of %s", i, o.ref), err)
	size := int64(len(o.data))
	wrongSize := f.Size != size && (f.Size != -1 || last.Size > 0 || f.Complete)
	if wrongSize || f.Verified < last.Verified || f.Verified > size || f.Complete &&
		f.Verified >= 0 && f.Verified < size {
		w.Fatalf("node %d has of %s with %d bytes: %+v, before: %+v", i, o.ref, size, f, last)
	}
	return f
}

// watch polls nodes until enough returns true for one of them or the limit has passed. It returns
// the last answer.
func (w *swarm) watch(o object, limit time.Duration, enough func(system.Progress) bool, nodes ...int) (
	f system.Progress, ok bool) {
	last := slices.Repeat([]system.Progress{{Verified: -1}}, len(w.nodes))
	ok = await(limit, often, func() bool {
		return slices.ContainsFunc(nodes, func(i int) bool {
			f = w.look(i, o, last[i])
			last[i] = f
			return enough(f)
		})
	})
	return f, ok
}

// never polls nodes until limit has passed, and fails if wrong is true for any of them.
func (w *swarm) never(wrong func(system.Progress) bool, o object, limit time.Duration, nodes ...int) {
	if f, is := w.watch(o, limit, wrong, nodes...); is {
		w.Fatalf("one of the nodes %d has what no other can have given it: %+v", nodes, f)
	}
}

func complete(f system.Progress) bool { return f.Complete }

func anything(f system.Progress) bool { return f.Complete || f.Verified > 0 }

// awaitComplete waits until node i is complete, and reads the content back from its disk.
func (w *swarm) awaitComplete(i int, o object) system.Progress {
	f, ok := w.watch(o, fetching, complete, i)
	if !ok {
		w.Fatalf("node %d has not got %s (%d bytes) after %v: %+v", i, o.ref, len(o.data), fetching, f)
	}
	w.wantBack(i, o)
	return f
}

// get fetches a whole object.
func (w *swarm) get(i int, o object, from ...int) system.Progress {
	w.fetch(i, o, from...)
	return w.awaitComplete(i, o)
}

func (w *swarm) wantBack(i int, o object) {
	defer w.soon("to read back")()
	w.wantContent(fmt.Sprintf("node %d: read back %s", i, o.ref), o.data, func(to io.Writer) error {
		return w.nodes[i].ReadBack(w.ctx(), o.ref, to)
	})
}

// sizes tests sizes around those of blocks and pieces.
func (w *swarm) sizes() {
	for _, size := range []int64{1, 16<<10 - 1, 16 << 10, 256 << 10, 256<<10 + 1, 5*mib + 7} {
		o := w.publish(0, fmt.Sprintf("swarm-%d", size), size)
		publisher := w.awaitComplete(0, o)
		f := w.get(1, o, 0)
		// Some nodes count sent bytes a moment later.
		p, counted := w.watch(o, soon, func(p system.Progress) bool { return p.Sent < 0 || p.Sent >= size }, 0)
		if publisher.Received > 0 || f.Received >= 0 && f.Received < size || !counted {
			w.Errorf("%d bytes: the publisher received %d and sent %d, the other received %d",
				size, publisher.Received, p.Sent, f.Received)
		}
	}
}

func (w *swarm) threeAtOnce() {
	o := w.publish(3, "three", 6*mib)
	address := w.address(3)
	var tasks errgroup.Group
	for i := range 3 {
		tasks.Go(func() error { return w.nodes[i].Fetch(w.ctx(), o.ref, []string{address}) })
	}
	w.must("fetch", tasks.Wait())
	for i := range 3 {
		w.awaitComplete(i, o)
	}
}

func (w *swarm) severalSeeders() {
	o := w.publish(0, "seeders", 6*mib)
	for i := 1; i < 3; i++ {
		if other := w.publish(i, "seeders", 6*mib); other.ref != o.ref {
			w.Fatalf("the same bytes and name are %s on node %d and %s on node 0", other.ref, i, o.ref)
		}
	}
	if other := w.store(w.nodes[0].Publish, "seeders", Bytes("others", 6*mib)); other.ref == o.ref {
		w.Fatalf("other bytes have the same ref %s", o.ref)
	}
	w.get(3, o, 0, 1, 2)
	if again := w.publish(3, "seeders", 6*mib); again.ref != o.ref { // existing content
		w.Errorf("published again, the ref is %s instead of %s", again.ref, o.ref)
	}
	w.awaitComplete(3, o)
}

// handedOn checks that a node serves fetched content, if its system does that.
func (w *swarm) handedOn() {
	o := w.publish(0, "handed on", 2*mib)
	w.get(1, o, 0)
	w.forgets(0, o)
	w.fetch(2, o, 1)
	if w.Leaf {
		w.never(anything, o, watched, 2)
		return
	}
	w.awaitComplete(2, o)
}

// unknown checks that a fetch of content that no node has makes no progress and does not hang. The
// ref is valid: its only holder has forgotten the content.
func (w *swarm) unknown() {
	o := w.publish(0, "unknown", mib)
	w.forgets(0, o)
	w.fetch(1, o)       // knows no peers
	w.fetch(3, o, 0, 2) // knows only peers without the content
	w.never(anything, o, watched, 1, 3)
	for _, i := range []int{1, 3} {
		end := w.soon("read back of what is not there")
		var got bytes.Buffer
		if err := w.nodes[i].ReadBack(w.ctx(), o.ref, &got); err == nil && bytes.Equal(got.Bytes(), o.data) {
			w.Errorf("node %d: read back", i)
		}
		end()
		w.forgets(i, o)
	}
}

func (w *swarm) badRefs() {
	n := w.nodes[0]
	for _, ref := range badRefs {
		for how, call := range map[string]func() error{
			"fetch":     func() error { return n.Fetch(w.ctx(), ref, nil) },
			"progress":  func() error { return errorOf(n.Progress(w.ctx(), ref)) },
			"read back": func() error { return n.ReadBack(w.ctx(), ref, io.Discard) },
			"forget":    func() error { return n.Forget(w.ctx(), ref) },
		} {
			w.failsSoon(fmt.Sprintf("%s of malformed ref %q", how, ref), call, system.ErrBadRef, system.ErrNotFound)
		}
	}
}

func (w *swarm) badReaders() {
	w.kit.badReaders(w.nodes[0].Publish)
	w.wantBack(0, w.publish(0, "after", mib))
}

// forget checks that forgetting frees the disk of that node only, and that the content can be
// fetched again.
func (w *swarm) forget() {
	const size = 8 * mib
	o := w.publish(0, "forget", size)
	w.get(1, o, 0)
	before := w.used()
	w.forgets(1, o)
	if freed := before - w.used(); freed < size/10*9 || freed > size*3/2 {
		w.Errorf("to forget %d bytes freed %d", size, freed)
	}
	w.fails("progress of what was forgotten", errorOf(w.nodes[1].Progress(w.ctx(), o.ref)), system.ErrNotFound)
	w.fails("read back of what was forgotten", w.nodes[1].ReadBack(w.ctx(), o.ref, io.Discard), system.ErrNotFound)
	w.wantBack(0, o)
	w.get(1, o, 0)
}

// openFiles checks that trials, each with a probe, a content and its removal, do not leave files,
// sockets or pipes open: nodes live through hundreds of them.
func (w *swarm) openFiles() {
	const rounds, slack = 5, 8 // slack: connections and files of threads vary
	var first []int
	for round := range rounds {
		for _, n := range w.nodes {
			if h, ok := n.(system.Healther); ok {
				w.must("health", h.Health(w.ctx()))
			}
		}
		o := w.publish(0, fmt.Sprintf("open files %d", round), mib)
		for i := range w.nodes[1:] {
			w.fetch(i+1, o, 0)
		}
		for i := range w.nodes[1:] {
			w.awaitComplete(i+1, o)
		}
		for i := range w.nodes {
			w.forgets(i, o)
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

// descriptors returns the number of open files of each process of the nodes, including its
// descendants.
func (w *swarm) descriptors() []int {
	var all []int
	for _, p := range processes(w.c.Nodes()...) {
		open := 0
		for _, member := range family(p) {
			files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", member.PID)) // an ended child has none
			open += len(files)
		}
		all = append(all, open)
	}
	return all
}

// used returns the disk space of the nodes' files in bytes.
func (w *swarm) used() int64 {
	h, err := disk.Usage(disk.Dir{Files: testbed.LocalFiles{}, Path: w.dir})
	w.must("disk usage", err)
	return h.Disk
}

func (w *swarm) stop() {
	w.stopTwice(w.c)
	w.failsSoon("a task for a node that is gone", func() error { return w.nodes[0].Fetch(w.ctx(), "x", nil) })
}

// half is the size of the content in cases that stop in the middle.
const half = 8 * mib

// toHalf starts a slow fetch by node 1 and returns when about half of the content has arrived.
func (w *swarm) toHalf() object {
	o := w.publish(0, "half", half)
	w.fetch(1, o, 0)
	f, ok := w.watch(o, fetching, func(f system.Progress) bool { return f.Verified >= half*4/10 }, 1)
	if !ok || f.Complete {
		w.Fatalf("half of it was never there: %+v", f)
	}
	return o
}

func (w *swarm) kill(i int) {
	procs := slices.DeleteFunc(slices.Clone(w.nodes[i].Processes()), func(p testbed.Process) bool {
		return p.Host().Name() != w.hosts[i].Name() // that of a client, which continues
	})
	if len(procs) == 0 {
		w.Errorf("node %d has no process to kill", i)
	}
	w.must("kill", w.nodes[i].(system.Restarter).Kill(w.ctx()))
	w.wantEnded(procs)
}

func (w *swarm) restart(i int, keep bool) {
	before := w.address(i)
	w.must("restart", w.nodes[i].(system.Restarter).Restart(w.ctx(), keep))
	if after := w.address(i); after != before || len(w.nodes[i].Processes()) == 0 {
		w.Errorf("node %d was at %s and is at %s after a restart, with %d processes", i, before, after,
			len(w.nodes[i].Processes()))
	}
}

// publishAgain restarts the seeder and publishes its content again.
func (w *swarm) publishAgain(name string, o object) {
	w.restart(0, true)
	if again := w.publish(0, name, int64(len(o.data))); again.ref != o.ref {
		w.Fatalf("published again as %s, before as %s", again.ref, o.ref)
	}
}

func (w *swarm) leecherKilled(keep bool) {
	o := w.toHalf()
	w.kill(1)
	w.hurry()
	w.failsSoon("progress of a node that was killed", func() error {
		_, err := w.nodes[1].Progress(w.ctx(), o.ref)
		if errors.Is(err, system.ErrNotFound) {
			w.Error(err)
		}
		return err
	})
	w.restart(1, keep)
	if _, err := w.nodes[1].Progress(w.ctx(), o.ref); !keep {
		w.fails("progress of a node without its data", err, system.ErrNotFound)
	}
	w.get(1, o, 0)
	// With kept data only bytes in flight are sent twice, otherwise all received bytes.
	sent := w.look(0, o, system.Progress{}).Sent
	if sent >= 0 && keep != (sent <= half*135/100) {
		w.Errorf("data kept: %v, and %d bytes were sent of %d", keep, sent, half)
	}
}

// seederKilled checks that no node completes without the rest, that every call returns, and that
// the fetch continues when the seeder is back.
func (w *swarm) seederKilled() {
	o := w.toHalf()
	w.fetch(2, o, 0, 1)
	w.kill(0)
	w.hurry()
	w.never(complete, o, watched, 1, 2)
	w.failsSoon("publish by a node that was killed", func() error {
		return errorOf(w.nodes[0].Publish(w.ctx(), "more", 1, bytes.NewReader([]byte{1})))
	})
	if h, ok := w.nodes[0].(system.Healther); ok {
		w.failsSoon("health of a node that was killed", func() error { return h.Health(w.ctx()) })
	}
	w.publishAgain("half", o)
	w.fetch(1, o, 0, 2)
	w.fetch(2, o, 0, 1)
	w.awaitComplete(1, o)
	w.awaitComplete(2, o)
}

// spoilt checks that bytes corrupted on a stopped node's disk do not count as complete after its
// start, and are fetched again.
func (w *swarm) spoilt() {
	if !w.Plain {
		w.Skip("the bytes of a content are not found on the system's disk")
	}
	o := w.publish(0, "spoilt", 4*mib)
	seeders := w.holders(o.data)
	w.get(1, o, 0)
	w.kill(1)
	w.kill(0)
	leechers := w.holders(o.data)
	maps.DeleteFunc(leechers, func(path string, _ int64) bool { return seeders[path] > 0 })
	if len(leechers) == 0 {
		w.Fatalf("the content was not found on the leecher's disk")
	}
	for path, at := range leechers {
		w.must("chmod", os.Chmod(path, 0o600)) // some stores keep their files read-only
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		w.must("open", err)
		_, err = f.WriteAt(make([]byte, 64), at-1)
		w.must("spoil", errors.Join(err, f.Close()))
	}
	w.restart(1, true)
	w.fetch(1, o)
	w.never(complete, o, watched, 1)
	w.publishAgain("spoilt", o)
	w.get(1, o, 0)
}

// holders returns the files that contain a run of bytes from the middle of data, and its position
// (from 1).
func (w *swarm) holders(data []byte) map[string]int64 {
	needle := data[len(data)/2+1000 : len(data)/2+1064]
	found := map[string]int64{}
	w.must("walk", testbed.LocalFiles{}.Walk(w.dir, func(e testbed.Entry) error {
		path := filepath.Join(w.dir, e.Path)
		if e.Mode.IsRegular() {
			b, _ := os.ReadFile(path) // it may have vanished
			if at := bytes.Index(b, needle); at >= 0 {
				found[path] = int64(at) + 1
			}
		}
		return nil
	}))
	return found
}
