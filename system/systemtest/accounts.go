package systemtest

import (
	"bytes"
	"crypto/rand"
	"math/big"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// testStats checks that what the servers are said to hold grows by what they
// are given. A system may take a moment to count.
func testStats(t *testing.T, n system.Store) {
	st, ok := n.(system.Stats)
	if !ok {
		t.Skip("the system does not tell what its servers hold")
	}
	holdings := func() system.Holdings {
		t.Helper()
		h, err := st.Stats(Context(t))
		if err != nil {
			t.Fatalf("stats: %v", err)
		}
		for what, v := range map[string]int64{"objects": h.Objects, "absolute": h.Absolute, "disk": h.Disk, "entries": h.Entries, "inodes": h.Inodes} {
			if v < -1 {
				t.Fatalf("stats: %s is %d", what, v)
			}
		}
		return h
	}
	const size = mib
	before := holdings()
	if before == (system.Holdings{Objects: -1, Absolute: -1, Disk: -1, Entries: -1, Inodes: -1}) {
		t.Fatal("stats: the system says that it can tell, and tells nothing")
	}
	name := rand.Text() // an attached system may have had the content of an earlier run
	ref, err := system.Seed(Context(t), n, name, size, bytes.NewReader(Bytes(name, size)))
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := n.(system.Settler); ok {
		if err := s.Settle(Context(t), ref); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(soon); ; time.Sleep(100 * time.Millisecond) {
		after := holdings()
		absolute := before.Absolute < 0 || after.Absolute-before.Absolute >= size
		disk := before.Disk < 0 || after.Disk > before.Disk
		objects := before.Objects < 0 || after.Objects > before.Objects
		if absolute && disk && objects {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("stats before an object of %d bytes: %+v, after it: %+v", size, before, after)
		}
	}
}

func testPhases(t *testing.T, n system.Store) {
	p, ok := n.(system.Phaser)
	if !ok {
		t.Skip("the system keeps no account of where time goes")
	}
	want := func(after string) {
		t.Helper()
		phases, err := p.Phases(Context(t))
		if err != nil || len(phases) == 0 {
			t.Errorf("phases of a %s: %v, %v", after, phases, err)
		}
		seen := map[string]bool{}
		for _, ph := range phases {
			if ph.Name == "" || ph.Took < 0 || ph.Took > time.Minute || seen[ph.Name] {
				t.Errorf("phases of a %s: %+v", after, phases)
			}
			seen[ph.Name] = true
		}
	}
	data := Bytes("phases", 20_000)
	ref := put(t, n, "phases", data)
	want("put")
	wantObject(t, n, ref, data)
	want("get")
}

func testCosts(t *testing.T, n system.Getter) {
	c, ok := n.(system.Coster)
	if !ok {
		t.Skip("the system is not paid for")
	}
	costs, err := c.Costs(Context(t))
	if err != nil {
		t.Fatalf("costs: %v", err)
	}
	if costs.Currency == "" || costs.Decimals < 0 {
		t.Errorf("costs in %q with %d decimals", costs.Currency, costs.Decimals)
	}
	amount := func(of string, a *big.Int) {
		t.Helper()
		if a != nil && a.Sign() < 0 {
			t.Errorf("%s is %v", of, a)
		}
	}
	amount("balance", costs.Balance)
	amount("locked", costs.Locked)
	for _, s := range costs.Spent {
		amount("spent for "+s.Purpose, s.Amount)
		if s.Purpose == "" {
			t.Errorf("%v spent for nothing", s.Amount)
		}
	}
	for _, p := range costs.Prices {
		amount("price of "+p.Of, p.Amount)
		if p.Of == "" || p.Per == "" {
			t.Errorf("price %+v", p)
		}
	}
}
