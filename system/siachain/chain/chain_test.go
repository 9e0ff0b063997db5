package chain

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

var forms = []string{V1, V2}

// small returns the spec of a chain that is made quickly and has more than one batch.
func small(form string) Spec { return Spec{Blocks: 130, Transactions: 3, Form: form, Seed: 7} }

// stranger returns the spec of a chain without blocks in common with that of s.
func stranger(s Spec) Spec {
	s.Seed++
	return s
}

// cached returns a chain of the spec in a cache of its own.
func cached(t *testing.T, s Spec) *Chain {
	t.Helper()
	c, err := Get(t.Context(), t.TempDir(), s, func(int, int) {})
	must(t, err)
	return c
}

// open opens a chain for reading until the test ends.
func open(t *testing.T, c *Chain) *chain.Manager {
	t.Helper()
	m, shut, err := c.OpenReadOnly()
	must(t, err)
	t.Cleanup(func() { must(t, shut()) })
	return m
}

// fresh returns the store of a new node for a spec.
func fresh(t *testing.T, s Spec) *Store {
	t.Helper()
	store, err := OpenStore(t.TempDir(), s.Network(), s.Genesis(), true)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

// blocks returns all of a chain's blocks after genesis.
func blocks(t *testing.T, m *chain.Manager) []types.Block {
	t.Helper()
	first, _ := m.BestIndex(0)
	all, left, err := m.BlocksForHistory([]types.BlockID{first.ID}, 1<<30)
	if err != nil || left != 0 {
		t.Fatalf("%v, and %d blocks are left", err, left)
	}
	return all
}

// The tips are constants: if they change, the chain is another one, and format must be increased.
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
		if one.Tip != two.Tip || one.Bytes != two.Bytes {
			t.Errorf("%+v was made twice: %+v, %+v", tt.spec, one.Manifest, two.Manifest)
		}
		if one.Tip.ID.String() != tt.tip {
			t.Errorf("%+v: tip %v, want %s", tt.spec, one.Tip.ID, tt.tip)
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
			bytes += encodedBytes(b)
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
			if share < watchedShare/2 || share > 2*watchedShare {
				t.Errorf("%s: the share of %s is %.3f, and should be about %v", form, what, share, watchedShare)
			}
		}
	}
}

// No chain may require real work, however long it is. The longest chain is followed by its headers
// only.
func TestTheDifficultyStaysTrivial(t *testing.T) {
	const n = 3000
	for _, form := range forms {
		s := Spec{Blocks: 1, Form: form}
		g := newGenerator(s)
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
	if last := start().Add(maxBlocks * interval); time.Until(last) > -365*24*time.Hour {
		t.Errorf("the last block would be of %v", last)
	}
}

func TestReplay(t *testing.T) {
	for _, form := range forms {
		c := cached(t, Spec{Blocks: 230, Form: form, Seed: 1})
		for _, workers := range []int{1, 3} {
			store := fresh(t, c.Spec)
			for range 2 { // the second time, there is nothing left to do
				if err := Replay(t.Context(), c, store.Manager(), workers); err != nil {
					t.Fatalf("%s: %v", form, err)
				}
			}
			if got := store.Manager().Tip(); got != c.Tip {
				t.Errorf("%s: tip %v, want %v", form, got, c.Tip)
			}
			if n := store.Commits(); n < 1+3 { // one for genesis and one for each batch
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
