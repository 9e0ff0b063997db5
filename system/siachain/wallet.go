//go:build !nowalletd

package siachain

import (
	"fmt"
	"path/filepath"
	"sync/atomic"

	"go.sia.tech/core/types"
	siachain "go.sia.tech/coreutils/chain"
	"go.sia.tech/walletd/v2/persist/sqlite"
	walletd "go.sia.tech/walletd/v2/wallet"
)

// withWalletd reports whether this program has walletd's index.
const withWalletd = true

// wallet is walletd's wallet manager, which follows a chain.
type wallet struct {
	*walletd.Manager
	store   *sqlite.Store
	indexed atomic.Int64
	commits atomic.Int64
}

// openWallet is nil where nothing subscribes. watched are the addresses of the
// personal index.
func openWallet(dir string, s settings, cm *siachain.Manager, watched []types.Address) (*wallet, error) {
	mode := walletd.IndexModePersonal
	switch s.subscriber {
	case "none":
		return nil, nil
	case "full":
		mode = walletd.IndexModeFull
	}
	path := filepath.Join(dir, walletFile)
	w, err := beginWallet(path, s, mode, cm, watched)
	if err != nil {
		return nil, fmt.Errorf("sia-chain: the subscriber's store %s: %w; it stays as it is", path, err)
	}
	return w, nil
}

func beginWallet(path string, s settings, mode walletd.IndexMode, cm *siachain.Manager,
	watched []types.Address) (_ *wallet, err error) {
	if err := registerSQLite(); err != nil {
		return nil, err
	}
	w := &wallet{}
	if w.store, err = sqlite.OpenDatabase(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.store.Close()
		}
	}()
	at, err := w.store.LastCommittedIndex()
	if err != nil {
		return nil, err
	}
	w.indexed.Store(int64(at.Height))
	if mode == walletd.IndexModePersonal {
		if err := w.watch(watched); err != nil {
			return nil, err
		}
	}
	w.Manager, err = walletd.NewManager(cm, followed{w.store, w}, walletd.WithIndexMode(mode),
		walletd.WithSyncBatchSize(s.walletBatch))
	return w, err
}

// watch makes a wallet of the addresses where there is none.
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

// followed is the store, and records in the wallet how far it is.
type followed struct {
	*sqlite.Store
	wallet *wallet
}

// UpdateChainState implements walletd's wallet.Store: one transaction.
func (f followed) UpdateChainState(reverted []siachain.RevertUpdate, applied []siachain.ApplyUpdate) error {
	if err := f.Store.UpdateChainState(reverted, applied); err != nil {
		return err
	}
	f.wallet.commits.Add(1)
	switch {
	case len(applied) > 0:
		f.wallet.indexed.Store(int64(applied[len(applied)-1].State.Index.Height))
	case len(reverted) > 0:
		f.wallet.indexed.Store(int64(reverted[len(reverted)-1].State.Index.Height))
	}
	return nil
}
