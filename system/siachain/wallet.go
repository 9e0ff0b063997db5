//go:build !nowalletd

package siachain

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"go.sia.tech/core/types"
	siachain "go.sia.tech/coreutils/chain"
	"go.sia.tech/walletd/v2/persist/sqlite"
	walletd "go.sia.tech/walletd/v2/wallet"
	_ "modernc.org/sqlite" // registers SQLite in Go

	"github.com/plimsoll-project/plimsoll/system"
)

// withWalletd reports whether this program includes walletd's index.
const withWalletd = true

// wallet is walletd's wallet manager, which follows a chain.
type wallet struct {
	*walletd.Manager
	store   *sqlite.Store
	indexed atomic.Int64
	commits atomic.Int64
}

// openWallet returns the subscriber, or nil if there is none. watched are the addresses of the
// personal index.
func openWallet(dir string, o system.Options, cm *siachain.Manager, watched []types.Address) (w *wallet, err error) {
	if o["subscriber"] == "none" {
		return nil, nil
	}
	if err := registerSQLite(); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, walletFile)
	w = &wallet{}
	defer func() {
		if err != nil {
			if w.store != nil {
				w.store.Close()
			}
			w, err = nil, fmt.Errorf("sia-chain: the subscriber's store %s: %w; it stays as it is", path, err)
		}
	}()
	if w.store, err = sqlite.OpenDatabase(path); err != nil {
		return w, err
	}
	at, err := w.store.LastCommittedIndex()
	if err != nil {
		return w, err
	}
	w.indexed.Store(int64(at.Height))
	mode := walletd.IndexModeFull
	if o["subscriber"] == "personal" {
		mode = walletd.IndexModePersonal
		if err := w.watch(watched); err != nil {
			return w, err
		}
	}
	w.Manager, err = walletd.NewManager(cm, followed{w.store, w}, walletd.WithIndexMode(mode),
		walletd.WithSyncBatchSize(int(o.Int("wallet_batch"))))
	return w, err
}

// watch creates a wallet with the addresses unless the store already has one.
func (w *wallet) watch(addresses []types.Address) error {
	if all, err := w.store.Wallets(); err != nil || len(all) > 0 {
		return err
	}
	one, err := w.store.AddWallet(walletd.Wallet{Name: "watched"})
	if err != nil {
		return err
	}
	entries := make([]walletd.Address, len(addresses))
	for i, a := range addresses {
		entries[i].Address = a
	}
	return w.store.AddWalletAddresses(one.ID, entries...)
}

func (w *wallet) close() error {
	w.Manager.Close()
	return w.store.Close()
}

// followed is the store. It records its progress in the wallet.
type followed struct {
	*sqlite.Store
	wallet *wallet
}

// UpdateChainState implements walletd's wallet.Store in one transaction.
func (f followed) UpdateChainState(reverted []siachain.RevertUpdate, applied []siachain.ApplyUpdate) error {
	if err := f.Store.UpdateChainState(reverted, applied); err != nil {
		return err
	}
	f.wallet.commits.Add(1)
	if last := len(applied) - 1; last >= 0 { // all peers have the same chain, so nothing is reverted
		f.wallet.indexed.Store(int64(applied[last].State.Index.Height))
	}
	return nil
}

// driverName is the driver that walletd opens its store with. It is the name of
// github.com/mattn/go-sqlite3, which needs C. See docs/decisions.md.
const driverName = "sqlite3"

// registerSQLite registers a driver with that name for walletd. It is only called in a node's
// process, before it opens a store.
func registerSQLite() error {
	if slices.Contains(sql.Drivers(), driverName) {
		return nil
	}
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return err
	}
	defer db.Close()
	sql.Register(driverName, pureGo{db.Driver()})
	return nil
}

// pureGo opens data source names in the form of go-sqlite3.
type pureGo struct{ driver.Driver }

// Open implements driver.Driver.
func (d pureGo) Open(name string) (driver.Conn, error) { return d.Driver.Open(translate(name)) }

// translate turns file:PATH?_journal_mode=WAL into file:PATH?_pragma=journal_mode(WAL). All
// parameters that walletd uses set pragmas.
func translate(name string) string {
	path, query, _ := strings.Cut(name, "?")
	var out []string
	for parameter := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(parameter, "=")
		out = append(out, fmt.Sprintf("_pragma=%s(%s)", strings.TrimPrefix(key, "_"), value))
	}
	slices.Sort(out) // busy_timeout comes first, before pragmas that may have to wait
	return path + "?" + strings.Join(out, "&")
}
