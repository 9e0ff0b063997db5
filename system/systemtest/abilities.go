package systemtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

func (k *objects) update() {
	u := k.n.(system.Updater)
	o := k.store(k.putMutable, "mutable", Bytes("mutable", 1000))
	beside := k.put("beside", 1000)
	other := k.store(k.putMutable, "other", Bytes("other mutable", 99))
	same := k.store(k.putMutable, "same", o.data)
	k.want(o, beside, other, same)
	refs := map[system.Ref]bool{o.ref: true, beside.ref: true, other.ref: true, same.ref: true}
	if len(refs) != 4 {
		k.Fatalf("mutable objects share refs: %v", refs)
	}
	for _, size := range []int64{1000, 5000, 20, 200 << 10} { // other bytes, larger, smaller, much larger
		o.data = Bytes(fmt.Sprintf("update-%d", size), size)
		k.must("update", u.Update(k.ctx(), o.ref, size, bytes.NewReader(o.data)))
		k.want(o)
	}
	k.fails("update with a reader that ends early", u.Update(k.ctx(), o.ref, 1000, Content("short", 999)))
	k.want(o, beside, other, same)
}

func (k *objects) putMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return system.PutMutable(ctx, k.n, name, size, r)
}

func (k *objects) directory() {
	d := k.n.(system.Directory)
	one, err := d.MakeDirectory(k.ctx(), "one")
	k.must("make directory", err)
	two, err := d.MakeDirectory(k.ctx(), "two")
	k.must("make directory", err)
	if one == two || one == "" || two == "" {
		k.Fatalf("two directories have the refs %q and %q", one, two)
	}
	want := map[system.Ref]object{}
	enter := func(dir system.Ref, name, seed string) error {
		ref, err := d.PutIn(k.ctx(), dir, name, 3000, Content(seed, 3000))
		if err == nil {
			want[ref] = object{ref, Bytes(seed, 3000)}
		}
		return err
	}
	k.must("put in a directory", enter(one, "a", "first"))
	k.must("put in a directory", enter(one, "b", "second"))
	k.must("put in the other directory", enter(two, "a", "in the other"))
	k.must("put with an odd name", enter(one, "../a b%20/☃", "odd name"))
	if len(want) != 4 {
		k.Errorf("4 entries have %d refs", len(want))
	}
	// The same name again: the system may refuse it or make a new entry. Its ref may be that of the
	// older entry, which then is the new object.
	if err := enter(one, "b", "second again"); err != nil {
		k.Logf("the same name twice: %v", err)
	}
	k.want(slices.Collect(maps.Values(want))...)
	k.failsUnknown("put in a directory", func(ctx context.Context, dir system.Ref) error {
		return errorOf(d.PutIn(ctx, dir, "x", 3000, Content("nowhere", 3000)))
	})
	k.fails("put in a directory with a context that ended before",
		errorOf(d.PutIn(ended(), one, "never", 5, Content("never", 5))))
}

func (k *objects) settle() {
	st := k.n.(system.Settler)
	o := k.put("settle", 100_000)
	for range 2 { // a settled object stays settled
		k.must("settle", st.Settle(k.ctx(), o.ref))
	}
	k.want(o)
	k.must("settle a seeded object", st.Settle(k.ctx(), k.seeded("settle-seeded", 1000)))
	k.failsUnknown("settle", st.Settle)
	never := k.put("settle-never", 2000).ref
	k.failsSoon("settle with a context that ended before", func() error { return st.Settle(ended(), never) },
		context.Canceled)
}

func (k *objects) cool() {
	c := k.n.(system.Cooler)
	o := k.store(k.seed, "cool", Bytes("cool", mib+3))
	warm := k.store(k.seed, "cool-other", Bytes("cool-other", 50_000))
	k.want(warm)
	for range 3 { // before and after it was read
		k.must("cool", c.Cool(k.ctx(), o.ref))
		k.want(o)
	}
	k.must("cool", c.Cool(k.ctx(), o.ref))
	if r, ok := k.n.(system.Ranger); ok {
		k.wantContent("range of a cold object", o.data[mib/2:mib/2+1000], func(w io.Writer) error {
			return r.GetRange(k.ctx(), o.ref, mib/2, 1000, w)
		})
	}
	k.want(warm)
	// An object that was put may have no other copy: then Cool must not remove it.
	ours := k.put("cool-own", 10_000)
	if err := c.Cool(k.ctx(), ours.ref); err != nil {
		k.Logf("cool an object that was put: %v", err)
	}
	k.want(ours)
	k.failsUnknown("cool", c.Cool)
	k.fails("cool with a context that ended before", c.Cool(ended(), o.ref))
}

// redial checks that concurrent operations are not affected.
func (k *objects) redial() {
	r := k.n.(system.Redialer)
	o := k.put("redial", 100_000)
	k.must("redial", r.Redial(k.ctx()))
	k.want(o)
	k.beside(r.Redial)
}

// stats checks that the reported holdings grow with a stored object. A system may take a moment to
// count.
func (k *objects) stats() {
	holdings := func() system.Holdings {
		h, err := k.n.(system.Stats).Stats(k.ctx())
		k.must("stats", err)
		if min(h.Objects, h.Absolute, h.Disk, h.Entries, h.Inodes) < -1 || max(h.Objects, h.Absolute, h.Disk, h.Entries,
			h.Inodes) < 0 {
			k.Fatalf("stats: %+v", h)
		}
		return h
	}
	const size = mib
	before := holdings()
	ref := k.seeded(rand.Text(), size) // an attached system may still have the content of an earlier run
	if s, ok := k.n.(system.Settler); ok {
		k.must("settle", s.Settle(k.ctx(), ref))
	}
	var after system.Holdings
	if !await(soon, 100*time.Millisecond, func() bool {
		after = holdings()
		absolute := before.Absolute < 0 || after.Absolute-before.Absolute >= size
		disk := before.Disk < 0 || after.Disk > before.Disk
		objects := before.Objects < 0 || after.Objects > before.Objects
		return absolute && disk && objects
	}) {
		k.Errorf("stats before an object of %d bytes: %+v, after it: %+v", size, before, after)
	}
}

func (k *objects) phases() {
	want := func(after string) {
		phases, err := k.n.(system.Phaser).Phases(k.ctx())
		if err != nil || len(phases) == 0 {
			k.Errorf("phases of a %s: %v, %v", after, phases, err)
		}
		seen := map[string]bool{}
		for _, ph := range phases {
			if ph.Name == "" || ph.Took < 0 || ph.Took > time.Minute || seen[ph.Name] {
				k.Errorf("phases of a %s: %+v", after, phases)
			}
			seen[ph.Name] = true
		}
	}
	o := k.put("phases", 20_000)
	want("put")
	k.want(o)
	want("get")
}

// monitor makes the calls of a collector, and checks that their readings fulfil the contract.
// Polling must change nothing.
func (k *objects) monitor(n system.Node) {
	if k.Attach == nil || k.Write {
		k.put("monitored-"+rand.Text(), 9)
	}
	before := k.listing(n)
	by := map[string]string{} // call by reading
	for range 2 {
		for _, c := range n.(system.Monitored).Calls() {
			readings, err := c.Read(k.ctx())
			if err != nil {
				k.Logf("%s: %v", c.Name, err) // a gap, for instance because nothing is known yet
			}
			for _, r := range readings {
				if other, twice := by[r.Name]; twice && other != c.Name {
					k.Errorf("both %s and %s give %s", other, c.Name, r.Name)
				}
				by[r.Name] = c.Name
				k.checkReading(c.Name, r)
			}
		}
	}
	if len(by) == 0 {
		k.Errorf("no call gives a reading")
	}
	if after := k.listing(n); !maps.Equal(before, after) {
		k.Errorf("objects before being looked at: %v, after it: %v", before, after)
	}
}

func (k kit) checkReading(call string, r system.Reading) {
	money := slices.ContainsFunc([]string{
		system.ReadBalance, system.ReadOutgoing, system.ReadIncoming, system.ReadUnspent, system.ReadSpent,
		system.ReadEnded, system.ReadEndedUnspent, system.ReadSpentPrefix, system.ReadEndedPrefix,
		system.ReadPricePrefix,
	}, func(amount string) bool {
		return r.Name == amount || strings.HasSuffix(amount, ":") && strings.HasPrefix(r.Name, amount)
	})
	switch {
	case r.Name == "" || strings.HasSuffix(r.Name, ":"):
		k.Errorf("%s: a reading without a name: %+v", call, r)
	case r.Bad != "":
		k.Logf("%s: %s is not to be used: %s", call, r.Name, r.Bad)
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Value < 0:
		k.Errorf("%s: %+v", call, r)
	case money && r.Amount == nil:
		k.Errorf("%s: %s is money, and has no exact amount", call, r.Name)
	}
}

// target fetches an object as a load generator does: only by its target.
func (k *objects) target() {
	o := k.store(k.seed, "target", Bytes("target", 600<<10))
	target, err := k.n.(system.HTTPServer).Target(o.ref)
	k.must("target", err)
	c := httpClient(k.T, k.from.Dial, target)
	k.wantContent(fmt.Sprint("GET ", target.URL), o.data, func(w io.Writer) error {
		return c.Get(k.ctx(), target, w)
	})
	if _, ok := k.n.(system.Ranger); !ok {
		return
	}
	k.wantContent(fmt.Sprint("a range of ", target.URL), o.data[1000:3000], func(w io.Writer) error {
		return c.GetRange(k.ctx(), target, 1000, 2000, w)
	})
	if got, head, err := c.Size(k.ctx(), target); got.Size != 600<<10 || got.NoRange || err != nil {
		k.Errorf("Content-Range has %d bytes, want %d (%v, %v)", got.Size, 600<<10, head, err)
	}
}

// Fetch gets a target from the test's own host.
func Fetch(t *testing.T, target system.HTTPTarget) []byte {
	t.Helper()
	var got bytes.Buffer
	Must(t, httpClient(t, (&net.Dialer{}).DialContext, target).Get(Context(t), target, &got))
	return got.Bytes()
}

func httpClient(t *testing.T, dial web.Dial, target system.HTTPTarget) *web.Client {
	t.Helper()
	c, err := web.New("test", dial, target)
	Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// cutOff disconnects many clients in the middle of an answer: servers have been seen not to answer
// for a minute afterwards.
func (k *objects) cutOff() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	clients, size := int(k.size(100, 10)), k.size(24*mib, 12*mib)
	target, err := k.n.(system.HTTPServer).Target(k.seeded("cut-off", size))
	k.must("target", err)
	client := httpClient(k.T, k.from.Dial, target)
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	var g errgroup.Group
	var half sync.WaitGroup
	half.Add(clients)
	for range clients {
		g.Go(func() error {
			resp, err := client.Open(ctx, web.Call{Method: http.MethodGet, URL: target.URL, Header: target.Header})
			if err == nil {
				defer resp.Body.Close()
				_, err = io.CopyN(io.Discard, resp.Body, mib)
			}
			half.Done()
			<-ctx.Done() // in the middle of the answer
			return err
		})
	}
	half.Wait()
	cancel()
	k.must("before the cut", g.Wait())
	defer k.soon("health after clients were cut off")()
	k.must(fmt.Sprintf("health after %d clients were cut off", clients), h.Health(k.ctx()))
}
