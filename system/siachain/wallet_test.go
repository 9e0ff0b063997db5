//go:build !nowalletd

package siachain

import (
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.sia.tech/core/types"
	"go.sia.tech/walletd/v2/persist/sqlite"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

// truth is what a chain contains for an address at its tip, computed from its blocks alone.
type truth struct {
	matured types.Currency // of its unspent outputs
	outputs int            // unspent
	inputs  int            // spent in blocks
}

func truthOf(t *testing.T, c *chain.Chain) (of map[types.Address]truth) {
	t.Helper()
	cm, closeStore, err := c.OpenReadOnly()
	must(t, err)
	defer closeStore()
	of = map[types.Address]truth{}
	_, updates, err := cm.UpdatesSince(types.ChainIndex{}, int(c.Tip.Height)+1)
	must(t, err)
	unspent := map[types.SiacoinOutputID]types.SiacoinElement{}
	for _, u := range updates {
		for _, d := range u.SiacoinElementDiffs() {
			e := d.SiacoinElement
			if d.Created {
				unspent[e.ID] = e.Share()
			}
			if d.Spent {
				delete(unspent, e.ID)
				a := of[e.SiacoinOutput.Address]
				a.inputs++
				of[e.SiacoinOutput.Address] = a
			}
		}
	}
	for _, e := range unspent {
		a := of[e.SiacoinOutput.Address]
		a.outputs++
		if e.MaturityHeight <= c.Tip.Height {
			a.matured = a.matured.Add(e.SiacoinOutput.Value)
		}
		of[e.SiacoinOutput.Address] = a
	}
	return of
}

// TestIndexIsRight compares what walletd's code stores, on SQLite in Go, with the chain's blocks:
// balances, outputs and events of each watched address.
func TestIndexIsRight(t *testing.T) {
	t.Parallel()
	for form, subscriber := range map[string]string{"v1": "personal", "v2": "full"} {
		spec := chain.Spec{Blocks: 300, Transactions: 3, Form: form, Seed: 3}
		c, err := chain.Get(systemtest.Context(t), t.TempDir(), spec, func(int, int) {})
		must(t, err)
		want := truthOf(t, c)
		t.Run(form+" "+subscriber, func(t *testing.T) {
			dir := t.TempDir()
			// a batch size that does not divide the chain, and a store that is opened twice
			set, err := (System{}).Info().Fill(system.Options{"subscriber": subscriber, "wallet_batch": "7", "db_sync": "off"})
			must(t, err)
			for i := range 2 {
				done, err := task{Chain: c.Dir, Dir: dir, Settings: set}.replay(systemtest.Context(t))
				if err != nil || done.Blocks != int64(300*(1-i)) {
					t.Fatalf("replay %d: %+v, %v", i, done, err)
				}
			}
			s, err := sqlite.OpenDatabase(filepath.Join(dir, walletFile))
			must(t, err)
			defer s.Close()
			if at, err := s.LastCommittedIndex(); err != nil || at != c.Tip {
				t.Errorf("indexed to %v of %v, %v", at, c.Tip, err)
			}
			events := 0
			for _, a := range spec.Watched() {
				b, err := s.AddressBalance(a)
				if err != nil || b.Siacoins != want[a].matured {
					t.Errorf("%v has %v, by the blocks %v (%v)", a, b.Siacoins, want[a].matured, err)
				}
				outputs, at, err := s.AddressSiacoinOutputs(a, nil, 0, 10_000)
				if err != nil || at != c.Tip || len(outputs) > want[a].outputs {
					t.Errorf("%v has %d outputs at %v, by the blocks %d (%v)", a, len(outputs), at, want[a].outputs,
						err)
				}
				all, err := s.AddressEvents(a, 0, 10_000)
				if err != nil || len(all) == 0 && want[a].inputs+want[a].outputs > 0 {
					t.Errorf("%v: %d events, by the blocks %d inputs, %d outputs (%v)", a, len(all), want[a].inputs,
						want[a].outputs, err)
				}
				for _, e := range all {
					if e.Timestamp.Year() < 2000 || e.Index.Height > c.Tip.Height {
						t.Errorf("an event at %v, %v", e.Index, e.Timestamp)
					}
				}
				events += len(all)
			}
			if events < 50 {
				t.Errorf("%d events of all watched addresses: the test shows little", events)
			}
			for a := range want { // an address that is not watched
				known, err := s.CheckAddresses([]types.Address{a})
				must(t, err)
				if subscriber == "full" && !known {
					t.Errorf("the full index does not know %v", a)
					break
				}
			}
		})
	}
}

// The driver does what walletd's parameters specify.
func TestPragmas(t *testing.T) {
	must(t, registerSQLite())
	db, err := sql.Open(driverName, "file:"+filepath.Join(t.TempDir(), "a.db")+"?_busy_timeout=60000&"+
		"_foreign_keys=true&_journal_mode=WAL&_secure_delete=false&_cache_size=-65536")
	must(t, err)
	defer db.Close()
	for pragma, want := range map[string]string{
		"busy_timeout": "60000", "foreign_keys": "1", "journal_mode": "wal", "secure_delete": "0",
		"cache_size": "-65536", "synchronous": "2",
	} {
		var got string
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, not %s (%v)", pragma, got, want, err)
		}
	}
}

func TestTasksThatCannotBeDone(t *testing.T) {
	if _, err := (task{Do: "serve", Chain: "/nowhere"}).begin(nil); err == nil {
		t.Error("a chain that is not there is served")
	}
	for _, what := range []task{
		{Do: "replay", Chain: "/nowhere", Dir: "/nowhere"},
		{Do: "make", Cache: "/proc/nowhere", Spec: chain.Spec{Blocks: 1, Form: "v2"}},
	} {
		if err := what.work(t.Context(), json.NewEncoder(io.Discard)); err == nil {
			t.Errorf("%+v: no error", what)
		}
	}
	for _, wrong := range []string{"no JSON", `{"Do":"serve","Settings":{"sync_interval":"0s"}}`} {
		if err := (System{}).Serve(t.Context(), []string{wrong}, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// TestDiskHoldsTheIndex checks that the disk space predicted for a chain includes the full index,
// and that its predicted growth with the chain is right within a factor.
func TestDiskHoldsTheIndex(t *testing.T) {
	t.Parallel()
	must(t, registerSQLite())
	size := func(dir string) int64 {
		t.Helper()
		s, err := sqlite.OpenDatabase(filepath.Join(dir, walletFile))
		if err == nil {
			err = s.Close()
		}
		info, err2 := os.Stat(filepath.Join(dir, walletFile))
		must(t, errors.Join(err, err2))
		return info.Size()
	}
	empty := size(t.TempDir())
	for _, spec := range []chain.Spec{
		{Blocks: 400, Transactions: 0, Form: "v1", Seed: 3}, {Blocks: 60, Transactions: 20, Form: "v1", Seed: 3},
		{Blocks: 400, Transactions: 0, Form: "v2", Seed: 3}, {Blocks: 60, Transactions: 20, Form: "v2", Seed: 3},
	} {
		made, err := task{Cache: t.TempDir(), Spec: spec}.make(systemtest.Context(t), func(string) {})
		must(t, err)
		set, err := (System{}).Info().Fill(system.Options{"subscriber": "full", "wallet_batch": "100", "db_sync": "off"})
		must(t, err)
		dir := t.TempDir()
		_, err = task{Chain: made.ID, Dir: dir, Settings: set}.replay(systemtest.Context(t))
		must(t, err)
		c, err := chain.Open(made.ID)
		must(t, err)
		grown, share := size(dir)-empty, indexByByte*made.Bytes+indexByBlock*made.Height
		if grown > share || grown < share/4 || empty > indexFloor/2 {
			t.Errorf("%+v: the index has %d bytes beyond the %d of an empty one; at most %d were foretold", spec, grown,
				empty, share)
		}
		if made.Disk < c.StoreLimit()+grown+empty {
			t.Errorf("%+v: %d bytes of disk are foretold, of which consensus.db may take %d and the index has %d", spec,
				made.Disk, c.StoreLimit(), grown+empty)
		}
	}
}
