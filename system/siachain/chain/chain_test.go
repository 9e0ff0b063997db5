package chain

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"
)

var forms = []string{V1, V2}

// small is a chain that is made in no time and has more than one batch.
func small(form string) Spec { return Spec{Blocks: 130, Transactions: 3, Form: form, Seed: 7} }

// stranger is the spec of a chain that has no block in common with that of s.
func stranger(s Spec) Spec {
	s.Seed++
	return s
}

// cached is a chain of the spec in a cache of its own.
func cached(t *testing.T, s Spec) *Chain {
	t.Helper()
	c, err := Cache{t.TempDir()}.Chain(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Built || c.Note != "" {
		t.Fatalf("a new chain says built %t, note %q", c.Built, c.Note)
	}
	return c
}

// open opens a chain to be read until the test ends.
func open(t *testing.T, c *Chain) *chain.Manager {
	t.Helper()
	m, shut, err := c.OpenReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shut(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// fresh is a new node's store for a spec.
func fresh(t *testing.T, s Spec) *Store {
	t.Helper()
	store, err := OpenStore(t.TempDir(), s.Network(), s.Genesis(), StoreOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// blocks are all of a chain's after genesis.
func blocks(t *testing.T, m *chain.Manager) []types.Block {
	t.Helper()
	first, _ := m.BestIndex(0)
	all, left, err := m.BlocksForHistory([]types.BlockID{first.ID}, 1<<30)
	if err != nil || left != 0 {
		t.Fatalf("%v, and %d blocks are left", err, left)
	}
	return all
}

// The tips are written down: a change of them is another chain, and format must rise.
func TestSameSpecGivesTheSameBlocks(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		tip  string
	}{
		{Spec{Blocks: 12, Transactions: 2, Form: V1, Seed: 1},
			"073d9e3fc1e77194760dbe5ef55c07f97926746f39df899efca6e3a9b3010a6a"},
		{Spec{Blocks: 12, Transactions: 2, Form: V2, Seed: 1},
			"aca2325252a3a7c46912ccf995bdfc6ffd5fffa3b3051bbe7cf7cd521e1c67cc"},
	} {
		one, two := cached(t, tt.spec), cached(t, tt.spec)
		if one.Tip != two.Tip || one.Bytes != two.Bytes || one.Genesis != two.Genesis {
			t.Errorf("%+v was made twice: %+v, %+v", tt.spec, one.Manifest, two.Manifest)
		}
		if one.Tip.ID.String() != tt.tip {
			t.Errorf("%+v: tip %v, want %s", tt.spec, one.Tip.ID, tt.tip)
		}
	}
}

func TestOtherSpecsGiveOtherBlocks(t *testing.T) {
	for _, form := range forms {
		s := Spec{Blocks: 5, Transactions: 1, Form: form, Seed: 1}
		seen := map[types.BlockID]bool{}
		for _, s := range []Spec{s, stranger(s)} {
			c := cached(t, s)
			if seen[c.Genesis] || seen[c.Tip.ID] {
				t.Errorf("%+v has a block of another spec", s)
			}
			seen[c.Genesis], seen[c.Tip.ID] = true, true
		}
	}
}

func TestAShorterChainIsTheBeginningOfALonger(t *testing.T) {
	for _, form := range forms {
		long := small(form)
		short := long
		short.Blocks = 40
		is, ok := open(t, cached(t, long)).BestIndex(40)
		if want := cached(t, short).Tip; !ok || is != want {
			t.Errorf("%s: block 40 is %v, want %v", form, is, want)
		}
	}
}

func TestBlocksAreValidAndWhatTheSpecSays(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		m := fresh(t, c.Spec).Manager()
		all := blocks(t, open(t, c))
		if len(all) != c.Spec.Blocks {
			t.Fatalf("%s: %d blocks", form, len(all))
		}
		watched := map[types.Address]bool{}
		for _, a := range c.Spec.Watched() {
			watched[a] = true
		}
		var bytes, transactions int64
		var paid, toWatched, spent int
		for _, b := range all {
			if err := m.AddBlocks([]types.Block{b}); err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			if (b.V2 != nil) != (form == V2) {
				t.Fatalf("%s: a block of the other form", form)
			}
			if form == V1 && len(b.Transactions) != 3 || form == V2 && (len(b.V2Transactions()) != 3 ||
				len(b.Transactions) != 0) {
				t.Fatalf("%s: %d and %d transactions in a block", form, len(b.Transactions), len(b.V2Transactions()))
			}
			if until := time.Since(b.Timestamp); until < 365*24*time.Hour {
				t.Fatalf("%s: a block of %v", form, b.Timestamp)
			}
			bytes += EncodedBytes(b)
			transactions += int64(len(b.Transactions) + len(b.V2Transactions()))
			count := func(payer types.Address, outputs []types.SiacoinOutput) {
				if watched[payer] {
					spent++
				}
				for _, o := range outputs[:len(outputs)-1] {
					paid++
					if watched[o.Address] {
						toWatched++
					}
				}
			}
			for _, x := range b.Transactions {
				count(x.SiacoinInputs[0].UnlockConditions.UnlockHash(), x.SiacoinOutputs)
			}
			for _, x := range b.V2Transactions() {
				count(x.SiacoinInputs[0].Parent.SiacoinOutput.Address, x.SiacoinOutputs)
			}
		}
		if m.Tip() != c.Tip {
			t.Errorf("%s: tip %v, want %v", form, m.Tip(), c.Tip)
		}
		if bytes != c.Bytes || transactions != c.Transactions {
			t.Errorf("%s: %d bytes, %d transactions; the manifest says %d, %d", form, bytes, transactions, c.Bytes,
				c.Transactions)
		}
		for what, share := range map[string]float64{
			"payments to watched addresses": float64(toWatched) / float64(paid),
			"payments from them":            float64(spent) / float64(transactions),
		} {
			if share < WatchedShare/2 || share > 2*WatchedShare {
				t.Errorf("%s: the share of %s is %.3f, and should be about %v", form, what, share, WatchedShare)
			}
		}
	}
}

// Bytes are those of the encoding, and not a guess from it.
func TestBytesAreThoseThatAreSent(t *testing.T) {
	for _, form := range forms {
		for _, b := range blocks(t, open(t, cached(t, small(form))))[:3] {
			var w fmtCounter
			e := types.NewEncoder(&w)
			types.EncodeSliceCast[types.V2Block](e, []types.Block{b, b})
			e.Flush()
			if want := int64(w.n-8) / 2; EncodedBytes(b) != want {
				t.Errorf("%s: %d bytes, want %d", form, EncodedBytes(b), want)
			}
		}
	}
}

type fmtCounter struct{ n int }

func (c *fmtCounter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

// Work must never have to be done, however long the chain: the longest is followed
// by its headers alone.
func TestTheDifficultyStaysTrivial(t *testing.T) {
	const n = 3000
	for _, form := range forms {
		s := Spec{Blocks: 1, Form: form}
		g := newGenerator(s)
		g.begin()
		state := g.state
		for i := range n {
			h := types.BlockHeader{ParentID: state.Index.ID, Timestamp: state.PrevTimestamps[0].Add(interval)}
			if err := consensus.ValidateHeader(state, h); err != nil {
				t.Fatalf("%s: header %d: %v", form, i+1, err)
			}
			next := consensus.ApplyHeader(state, h, time.Time{})
			if d := next.Difficulty.String(); d != "1" {
				t.Fatalf("%s: the difficulty after %d blocks is %s", form, i+1, d)
			}
			if !next.SufficientlyHeavierThan(state) {
				t.Fatalf("%s: block %d adds no work", form, i+1)
			}
			state = next
		}
	}
	if last := start().Add(MaxBlocks * interval); time.Until(last) > -365*24*time.Hour {
		t.Errorf("the last block would be of %v", last)
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	for _, s := range []Spec{
		{Blocks: 1, Form: "v3"},
		{Blocks: 0, Form: V1},
		{Blocks: MaxBlocks + 1, Form: V1},
		{Blocks: 1, Transactions: MaxTransactions + 1, Form: V2},
		{Blocks: 1, Transactions: -1, Form: V2},
	} {
		if _, err := (Cache{t.TempDir()}).Chain(t.Context(), s, nil); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// The fullest blocks are valid, too.
func TestFullBlocks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("signs thousands of transactions")
	}
	for _, form := range forms {
		cached(t, Spec{Blocks: 1, Transactions: MaxTransactions, Form: form, Seed: 3})
	}
}

func TestReplay(t *testing.T) {
	for _, form := range forms {
		c := cached(t, Spec{Blocks: 230, Form: form, Seed: 1})
		for _, workers := range []int{1, 3} {
			store := fresh(t, c.Spec)
			for range 2 { // the second time nothing is left to be done
				if err := Replay(t.Context(), c, store.Manager(), workers); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
			}
			if got := store.Manager().Tip(); got != c.Tip {
				t.Errorf("%s: tip %v, want %v", form, got, c.Tip)
			}
			if n := store.Commits(); n < 1+3 { // for genesis and for each batch
				t.Errorf("%s: %d commits", form, n)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough, m := errors.New("enough"), fresh(t, c.Spec).Manager()
		m.OnReorg(func(types.ChainIndex) { cancel(enough) })
		if err := Replay(ctx, c, m, 1); !errors.Is(err, enough) || m.Tip().Height != 100 {
			t.Errorf("%s: ended after the first batch: tip %v, %v", form, m.Tip(), err)
		}
		if err := Replay(t.Context(), c, fresh(t, stranger(c.Spec)).Manager(), 1); err == nil {
			t.Errorf("%s: a chain is replayed onto another genesis", form)
		}
	}
}
