package systemtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

func (k *objects) update() {
	u := k.n.(system.Updater)
	mutable := func(name string, data []byte) system.Ref {
		k.Helper()
		ref := store(k.putMutable).bytes(k.T, name, data)
		k.want(ref, data)
		return ref
	}
	ref := mutable("mutable", Bytes("mutable", 1000))
	others := map[system.Ref][]byte{
		k.put("beside", Bytes("beside", 1000)):       Bytes("beside", 1000),
		mutable("other", Bytes("other mutable", 99)): Bytes("other mutable", 99),
		mutable("same", Bytes("mutable", 1000)):      Bytes("mutable", 1000), // the content that ref has
	}
	if len(others) != 3 || others[ref] != nil {
		k.Fatalf("mutable objects share refs: %s and %v", ref, others)
	}
	var last []byte
	for _, size := range []int64{1000, 5000, 20, 200 << 10} { // other bytes, larger, smaller, much larger
		last = Bytes(fmt.Sprintf("update-%d", size), size)
		must(k.T, "update", u.Update(Context(k.T), ref, size, bytes.NewReader(last)))
		k.want(ref, last)
	}
	fails(k.T, "update with a reader that ends early", u.Update(Context(k.T), ref, 1000, Content("short", 999)))
	k.want(ref, last)
	for ref, data := range others {
		k.want(ref, data)
	}
}

func (k *objects) putMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return system.PutMutable(ctx, k.n, name, size, r)
}

func (k *objects) directory() {
	d := k.n.(system.Directory)
	one, err := d.MakeDirectory(Context(k.T), "one")
	must(k.T, "make directory", err)
	two, err := d.MakeDirectory(Context(k.T), "two")
	must(k.T, "make directory", err)
	if one == two || one == "" || two == "" {
		k.Fatalf("two directories have the refs %q and %q", one, two)
	}
	want := map[system.Ref][]byte{}
	enter := func(dir system.Ref, name, seed string) error {
		ref, err := d.PutIn(Context(k.T), dir, name, 3000, Content(seed, 3000))
		if err == nil {
			want[ref] = Bytes(seed, 3000)
		}
		return err
	}
	must(k.T, "put in a directory", enter(one, "a", "first"))
	must(k.T, "put in a directory", enter(one, "b", "second"))
	must(k.T, "put in the other directory", enter(two, "a", "in the other"))
	must(k.T, "put with an odd name", enter(one, "../a b%20/☃", "odd name"))
	if len(want) != 4 {
		k.Errorf("4 entries have %d refs", len(want))
	}
	// The same name once more: a refusal or a new entry, as the system likes.
	// Its ref may be that of the older entry, which then is the new object.
	if err := enter(one, "b", "second again"); err != nil {
		k.Logf("the same name twice: %v", err)
	}
	for ref, data := range want {
		k.want(ref, data)
	}
	for _, unknown := range k.unknown() {
		failsSoon(k.T, "put in an unknown directory", func() error {
			_, err := d.PutIn(Context(k.T), unknown, "x", 3000, Content("nowhere", 3000))
			return err
		})
	}
	_, err = d.PutIn(ended(), one, "never", 5, Content("never", 5))
	fails(k.T, "put in a directory with a context that ended before", err)
}

func (k *objects) settle() {
	st := k.n.(system.Settler)
	data := Bytes("settle", 100_000)
	ref := k.put("settle", data)
	for range 2 { // what is settled stays so
		must(k.T, "settle", st.Settle(Context(k.T), ref))
	}
	k.want(ref, data)
	must(k.T, "settle a seeded object", st.Settle(Context(k.T), k.seeded("settle-seeded", 1000)))
	for _, unknown := range k.unknown() {
		failsSoon(k.T, "settle of an unknown ref", func() error { return st.Settle(Context(k.T), unknown) })
	}
	never := k.put("settle-never", Bytes("settle-never", 2000))
	failsSoon(k.T, "settle with a context that ended before", func() error { return st.Settle(ended(), never) },
		context.Canceled)
}

func (k *objects) cool() {
	c := k.n.(system.Cooler)
	data, other := Bytes("cool", mib+3), Bytes("cool-other", 50_000)
	ref, warm := k.seeded("cool", mib+3), k.seeded("cool-other", 50_000)
	k.want(warm, other)
	for range 3 { // before it was read, and after
		must(k.T, "cool", c.Cool(Context(k.T), ref))
		k.want(ref, data)
	}
	must(k.T, "cool", c.Cool(Context(k.T), ref))
	if r, ok := k.n.(system.Ranger); ok {
		wantContent(k.T, "range of a cold object", data[mib/2:mib/2+1000], func(w io.Writer) error {
			return r.GetRange(Context(k.T), ref, mib/2, 1000, w)
		})
	}
	k.want(warm, other)
	// What was put may be nowhere else: then it may not be made to be forgotten.
	ours := k.put("cool-own", Bytes("cool-own", 10_000))
	if err := c.Cool(Context(k.T), ours); err != nil {
		k.Logf("cool an object that was put: %v", err)
	}
	k.want(ours, Bytes("cool-own", 10_000))
	for _, unknown := range k.unknown() {
		failsSoon(k.T, "cool of an unknown ref", func() error { return c.Cool(Context(k.T), unknown) })
	}
	fails(k.T, "cool with a context that ended before", c.Cool(ended(), ref))
}

// redial: operations of others end as if nothing had been.
func (k *objects) redial() {
	r := k.n.(system.Redialer)
	ref := k.put("redial", Bytes("redial", 100_000))
	must(k.T, "redial", r.Redial(Context(k.T)))
	k.want(ref, Bytes("redial", 100_000))
	k.beside(r.Redial)
}

// stats: what the servers are said to hold grows by what they are given. A
// system may take a moment to count.
func (k *objects) stats() {
	holdings := func() system.Holdings {
		k.Helper()
		h, err := k.n.(system.Stats).Stats(Context(k.T))
		must(k.T, "stats", err)
		if min(h.Objects, h.Absolute, h.Disk, h.Entries, h.Inodes) < -1 || max(h.Objects, h.Absolute, h.Disk, h.Entries,
			h.Inodes) < 0 {
			k.Fatalf("stats: %+v", h)
		}
		return h
	}
	const size = mib
	before := holdings()
	ref := k.seeded(rand.Text(), size) // an attached system may have had the content of an earlier run
	if s, ok := k.n.(system.Settler); ok {
		must(k.T, "settle", s.Settle(Context(k.T), ref))
	}
	var after system.Holdings
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		after = holdings()
		absolute := before.Absolute < 0 || after.Absolute-before.Absolute >= size
		disk := before.Disk < 0 || after.Disk > before.Disk
		objects := before.Objects < 0 || after.Objects > before.Objects
		if absolute && disk && objects {
			return
		}
	}
	k.Errorf("stats before an object of %d bytes: %+v, after it: %+v", size, before, after)
}

func (k *objects) phases() {
	want := func(after string) {
		k.Helper()
		phases, err := k.n.(system.Phaser).Phases(Context(k.T))
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
	data := Bytes("phases", 20_000)
	ref := k.put("phases", data)
	want("put")
	k.want(ref, data)
	want("get")
}

func (k *objects) costs(n system.Node) {
	costs, err := n.(system.Coster).Costs(Context(k.T))
	must(k.T, "costs", err)
	if costs.Currency == "" || costs.Decimals < 0 {
		k.Errorf("costs in %q with %d decimals", costs.Currency, costs.Decimals)
	}
	for _, s := range costs.Spent {
		if s.Purpose == "" || s.Amount != nil && s.Amount.Sign() < 0 {
			k.Errorf("spent for %q: %v", s.Purpose, s.Amount)
		}
	}
}

// monitor makes the calls that a collector makes, and holds their readings to the
// contract. Being looked at changes nothing.
func (k *objects) monitor(n system.Node) {
	if k.Attach == nil || k.Write {
		k.put("monitored-"+rand.Text(), []byte("looked at"))
	}
	before := listing(k.T, n)
	by := map[string]string{} // reading: call
	for range 2 {
		for _, c := range n.(system.Monitored).Calls() {
			readings, err := c.Read(Context(k.T))
			if err != nil {
				k.Logf("%s: %v", c.Name, err) // a gap: nothing is known yet, for instance
			}
			for _, r := range readings {
				if other, twice := by[r.Name]; twice && other != c.Name {
					k.Errorf("both %s and %s give %s", other, c.Name, r.Name)
				}
				by[r.Name] = c.Name
				checkReading(k.T, c.Name, r)
			}
		}
	}
	if len(by) == 0 {
		k.Error("no call gives a reading")
	}
	if after := listing(k.T, n); !maps.Equal(before, after) {
		k.Errorf("objects before being looked at: %v, after it: %v", before, after)
	}
}

func checkReading(t *testing.T, call string, r system.Reading) {
	t.Helper()
	amounts := []string{
		system.ReadBalance, system.ReadOutgoing, system.ReadIncoming, system.ReadUnspent,
		system.ReadSpent, system.ReadEnded, system.ReadEndedUnspent,
	}
	money := slices.Contains(amounts, r.Name)
	for _, prefix := range []string{system.ReadSpentPrefix, system.ReadEndedPrefix, system.ReadPricePrefix} {
		rest, has := strings.CutPrefix(r.Name, prefix)
		money = money || has && rest != ""
	}
	switch {
	case r.Name == "" || strings.HasSuffix(r.Name, ":"):
		t.Errorf("%s: a reading without a name: %+v", call, r)
	case r.Bad != "":
		t.Logf("%s: %s is not to be used: %s", call, r.Name, r.Bad)
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Value < 0:
		t.Errorf("%s: %+v", call, r)
	case money && r.Amount == nil:
		t.Errorf("%s: %s is money, and has no exact amount", call, r.Name)
	}
}
