package tahoe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// startFor starts a grid that ends with the test.
func startFor(t *testing.T, opt system.Options) (system.Cluster, *started) {
	t.Helper()
	systemtest.Need(t, System{}, opt)
	c := systemtest.Start(t, System{}, opt, systemtest.Hosts(t, 2))
	return c, c.Nodes()[0].(*started)
}

func mustPut(t *testing.T, n system.Store, seed string, size int64) system.Ref {
	t.Helper()
	ref, err := n.Put(systemtest.Context(t), seed, size, systemtest.Content(seed, size))
	must(t, err)
	return ref
}

func wantContent(t *testing.T, n system.Store, ref system.Ref, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("get %s: %d bytes of %d, %v", ref, got.Len(), len(want), err)
	}
}

// kinds are the kinds of errors; at most one of them applies to an error.
var kinds = []error{system.ErrTooFew, system.ErrNotFound, system.ErrQuota, system.ErrReadOnly}

// wantKind checks that err is only of this kind (nil: of none) and contains all these words.
func wantKind(t *testing.T, what string, err, want error, words ...string) {
	t.Helper()
	wrong := func(kind error) bool { return errors.Is(err, kind) != (kind == want) }
	lacks := func(word string) bool { return !strings.Contains(err.Error(), word) }
	if err == nil || slices.ContainsFunc(kinds, wrong) || slices.ContainsFunc(words, lacks) {
		t.Errorf("%s: error %v, want %v with %q", what, err, want, words)
	}
}

func stats(t *testing.T, n system.Stats) system.Holdings {
	t.Helper()
	h, err := n.Stats(systemtest.Context(t))
	must(t, err)
	return h
}

// wantExpansion puts an object and compares the growth of the storage nodes' data with its size.
func wantExpansion(t *testing.T, n *started, size int64, want, within float64) system.Ref {
	t.Helper()
	before := stats(t, n)
	ref := mustPut(t, n, fmt.Sprintf("expansion-%d", size), size)
	after := stats(t, n)
	if got := float64(after.Absolute-before.Absolute) / float64(size); math.Abs(got-want) > within {
		t.Errorf("%d bytes take %.4f times as much, want %.3f ± %.2f", size, got, want, within)
	}
	if after.Objects != before.Objects+1 {
		t.Errorf("%d objects after a put, %d before", after.Objects, before.Objects)
	}
	if disk := after.Disk - before.Disk; disk < after.Absolute-before.Absolute {
		t.Errorf("%d bytes of blocks hold %d bytes", disk, after.Absolute-before.Absolute)
	}
	if after.Entries <= before.Entries || after.Inodes <= before.Inodes {
		t.Errorf("a put adds no entries or no inodes: %+v, then %+v", before, after)
	}
	return ref
}

func kill(t *testing.T, n *started, i int) {
	t.Helper()
	p := n.procs[i]
	must(t, p.Signal(syscall.SIGKILL))
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s does not end", p.Name())
	}
}

// TestGrid shares one grid of 2-of-3 shares among several tests; those that kill storage nodes come
// last.
func TestGrid(t *testing.T) {
	t.Parallel()
	c, n := startFor(t, nil)
	id := c.Identity()
	if id["protocol"] != "gbs" || id["version"] != "tahoe-lafs 1.20.0" ||
		id["shares"] != "2 of 3, on 3 different nodes" || !strings.Contains(id["libraries"], "zfec ") {
		t.Errorf("identity %v", id)
	}
	if got := len(n.Processes()); got != 4 {
		t.Errorf("the client is observed with %d processes, want itself and 3 storage nodes", got)
	}
	t.Run("literal", func(t *testing.T) { testLiteral(t, n) })
	t.Run("cold", func(t *testing.T) { testCold(t, n) })
	t.Run("expansion", func(t *testing.T) { wantExpansion(t, n, 11<<20, 1.501, 0.01) })
	t.Run("phases", func(t *testing.T) { testPhases(t, n) })
	t.Run("killed", func(t *testing.T) { testKilled(t, n) })
}

func testLiteral(t *testing.T, n *started) {
	before := stats(t, n)
	lit := mustPut(t, n, "literal", 55)
	if !strings.HasPrefix(string(lit), "URI:LIT:") {
		t.Errorf("55 bytes have the cap %s", lit)
	}
	if after := stats(t, n); after != before {
		t.Errorf("55 bytes changed the storage nodes from %+v to %+v", before, after)
	}
	if phases, err := n.Phases(systemtest.Context(t)); err != nil || len(phases) != 0 {
		t.Errorf("phases of a literal put: %v, %v", phases, err)
	}
	chk := mustPut(t, n, "chk", 56)
	if !strings.HasPrefix(string(chk), "URI:CHK:") {
		t.Errorf("56 bytes have the cap %s", chk)
	}
	if after := stats(t, n); after.Objects != before.Objects+1 || after.Absolute <= before.Absolute {
		t.Errorf("56 bytes changed the storage nodes from %+v to %+v", before, after)
	}
}

// testPhases compares the client's account of operations with their duration, which includes the
// account.
func testPhases(t *testing.T, n *started) {
	const size = 3 << 20
	var ref, mutable, dir system.Ref
	var err error
	for _, c := range []struct {
		what  string
		do    func() error
		parts []string // consecutive phases
		other []string // other required phases
	}{
		{"put", func() error { ref = mustPut(t, n, "p", size); return nil },
			[]string{"upload: Storage Index", "upload: Peer Selection", "upload: Encode And Push"},
			[]string{"upload: Total", "upload: Cumulative Encoding", "upload: Cumulative Pushing",
				"upload: Send Hashes And Close"}},
		{"get", func() error { return n.Get(systemtest.Context(t), ref, io.Discard) },
			[]string{"download: read"}, []string{"download: DYHB requests", "download: block requests",
				"download: segments", "download: decode", "download: decrypt"}},
		{"range", func() error { return n.GetRange(systemtest.Context(t), ref, 10, 10, io.Discard) },
			[]string{"download: read"}, []string{"download: block requests"}},
		{"make", func() error {
			mutable, err = n.PutMutable(systemtest.Context(t), "m", 3000, systemtest.Content("m", 3000))
			return err
		}, []string{"publish: Total"}, []string{"publish: Pushing", "publish: RSA Signature"}},
		{"update", func() error {
			return n.Update(systemtest.Context(t), mutable, 2000, systemtest.Content("u", 2000))
		},
			[]string{"mapupdate: Total", "publish: Total"}, []string{"mapupdate: Initial Queries", "publish: Pushing"}},
		{"get mutable", func() error { return n.Get(systemtest.Context(t), mutable, io.Discard) },
			[]string{"mapupdate: Total", "retrieve: Total"}, []string{"retrieve: Decoding"}},
		{"make directory", func() error { dir, err = n.MakeDirectory(systemtest.Context(t), "d"); return err },
			[]string{"publish: Total"}, nil},
		{"put in", func() error {
			_, err := n.PutIn(systemtest.Context(t), dir, "e", 3000, systemtest.Content("e", 3000))
			return err
		}, []string{"mapupdate: Total", "retrieve: Total", "upload: Total", "publish: Total"}, nil},
	} {
		from := time.Now()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		wall := time.Since(from)
		phases, err := n.Phases(systemtest.Context(t))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		took := map[string]time.Duration{}
		for _, p := range phases {
			took[p.Name] = p.Took
		}
		var sum time.Duration
		for _, p := range append(c.parts, c.other...) {
			if took[p] <= 0 {
				t.Errorf("%s: no %q in %v", c.what, p, phases)
			}
		}
		for _, p := range c.parts {
			sum += took[p]
		}
		if sum > wall+wall/10 {
			t.Errorf("%s took %v, its phases %v (%v)", c.what, wall, sum, phases)
		}
		t.Logf("%s took %v: %v", c.what, wall, phases)
	}
}

// testKilled kills storage nodes one by one: the first in the middle of a get.
func testKilled(t *testing.T, n *started) {
	const size = 8 << 20
	data := systemtest.Bytes("survivor", size)
	ref := mustPut(t, n, "survivor", size)
	var got bytes.Buffer
	w := &after{w: &got, left: 1 << 20, do: func() { kill(t, n, 0) }}
	if err := n.Get(systemtest.Context(t), ref, w); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("get while a storage node of 3 dies: %d of %d bytes, %v", got.Len(), size, err)
	}
	wantContent(t, n, ref, data)
	_, err := n.Put(systemtest.Context(t), "unhappy", 3000, systemtest.Content("unhappy", 3000))
	wantKind(t, "put on 2 of 3 storage nodes", err, system.ErrTooFew, "tahoe/storage-1 ended by itself")
	wantKind(t, "health without a storage node", n.Health(systemtest.Context(t)), nil, "storage-1")
	kill(t, n, 1)
	for _, later := range []time.Duration{0, 2 * time.Second} { // at once, and after the client has noticed
		time.Sleep(later)
		wantKind(t, "get with 1 of 3 shares", n.Get(systemtest.Context(t), ref, io.Discard), system.ErrTooFew)
		_, err := n.Stat(systemtest.Context(t), ref)
		wantKind(t, "stat with 1 of 3 shares", err, system.ErrTooFew)
	}
}

// after is a writer that calls a function once some bytes have passed.
type after struct {
	w    io.Writer
	left int
	do   func()
}

func (a *after) Write(p []byte) (int, error) {
	if a.left > 0 && a.left <= len(p) {
		a.do()
	}
	a.left -= len(p)
	return a.w.Write(p)
}

// testCold reads objects twice through the same client, which caches nothing of the first read: the
// second read also requests shares from the storage nodes and makes them read the whole object.
func testCold(t *testing.T, n *started) {
	const size = 1 << 20
	data := systemtest.Bytes("cold", size)
	mutable, err := n.PutMutable(systemtest.Context(t), "cold", size, bytes.NewReader(data))
	must(t, err)
	for _, c := range []struct {
		ref  system.Ref
		asks string // the phase of requesting shares
	}{
		{mustPut(t, n, "cold", size), "download: DYHB requests"},
		{mutable, "mapupdate: Initial Queries"},
	} {
		for range 2 {
			before := diskReads(t, n.procs)
			wantContent(t, n, c.ref, data)
			if read := diskReads(t, n.procs) - before; read < size {
				t.Errorf("the storage nodes read %d bytes for a read of %d: the client kept some", read, size)
			}
			phases, err := n.Phases(systemtest.Context(t))
			asked := func(p system.Phase) bool { return p.Name == c.asks && p.Took > 0 }
			if err != nil || !slices.ContainsFunc(phases, asked) {
				t.Errorf("phases %v, %v: no %s", phases, err, c.asks)
			}
		}
	}
}

// diskReads returns how many bytes the processes have read from files, whether cached or not.
func diskReads(t *testing.T, procs []testbed.Process) (sum int64) {
	t.Helper()
	for _, p := range procs {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.ID().PID))
		if err != nil {
			t.Skipf("the kernel does not tell what a process reads: %v", err)
		}
		var n int64
		if _, err := fmt.Sscanf(string(b), "rchar: %d", &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// TestFoolscap tests 3-of-10 over the other protocol, on 5 storage nodes with 2 shares each; one
// dies during a put.
func TestFoolscap(t *testing.T) {
	t.Parallel()
	c, n := startFor(t, system.Options{"protocol": "foolscap", "nodes": "5", "needed": "3", "total": "10"})
	if got := c.Identity()["protocol"]; got != "foolscap" {
		t.Errorf("protocol %s", got)
	}
	wantKind(t, "another protocol than asked for", n.joined(t.Context(), config{nodes: 5, protocol: "gbs"}), nil, "foolscap")
	const size = 11 << 20
	ref := wantExpansion(t, n, size, 3.34, 0.02)
	data := systemtest.Bytes(fmt.Sprintf("expansion-%d", size), size)
	wantContent(t, n, ref, data)

	from := time.Now()
	body := io.MultiReader(systemtest.Content("dying", size), &atEnd{do: func() { kill(t, n, 0) }})
	_, err := n.Put(systemtest.Context(t), "dying", size, body)
	wantKind(t, "put while one of 5 storage nodes dies, all of which it must reach", err, system.ErrTooFew,
		"tahoe/storage-1 ended by itself")
	if took := time.Since(from); took > 30*time.Second {
		t.Errorf("it took %v to be told", took)
	}
	kill(t, n, 1)
	kill(t, n, 2)
	wantContent(t, n, ref, data) // 4 shares are left
	kill(t, n, 3)
	wantKind(t, "get with 2 of 10 shares, 3 needed", n.Get(systemtest.Context(t), ref, io.Discard), system.ErrTooFew)
}

// atEnd is the end of a reader, at which a function is called.
type atEnd struct{ do func() }

func (a *atEnd) Read([]byte) (int, error) {
	if a.do != nil {
		a.do()
		a.do = nil
	}
	return 0, io.EOF
}
