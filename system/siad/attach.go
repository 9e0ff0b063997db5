package siad

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
)

// attach checks in advance for problems that would otherwise appear only as uploads without
// progress.
func (n *node) attach(ctx context.Context, identity map[string]string) error {
	if err := checkPassword(ctx, n.API); err != nil {
		return err
	}
	if err := n.API.Synced(ctx); err != nil {
		return err
	}
	if n.Write { // reading needs neither a wallet nor contracts for uploads
		if err := n.unlocked(ctx); err != nil {
			return err
		}
	}
	if n.Write || n.data == 0 {
		r, err := n.uploadReady(ctx)
		if err != nil {
			return err
		}
		if n.data == 0 {
			n.data, n.parity = r.DataPieces, r.ParityPieces
		}
		if n.data < 1 || n.parity < 1 {
			return fmt.Errorf("siad: %s reports no default redundancy; set options `data_pieces` and `parity_pieces`",
				n.API.Base.Host)
		}
		if n.Write && !r.Ready {
			return fmt.Errorf("siad: %s has %d contracts for uploads and needs %d: %w", n.API.Base.Host, r.Active,
				r.Needed, system.ErrTooFew)
		}
	}
	return n.identify(ctx, identity)
}

// uploadReady returns the renter's readiness for uploads at the redundancy of puts or, until that
// is known, at the renter's default redundancy.
func (n *node) uploadReady(ctx context.Context) (r readyAnswer, err error) {
	query := n.redundancy()
	if n.data == 0 {
		query = nil
	}
	err = n.API.Get(ctx, "/renter/uploadready", query, &r)
	return r, err
}

// unlocked returns an error if the wallet is locked.
func (n *node) unlocked(ctx context.Context) error {
	var w walletAnswer
	err := n.API.Get(ctx, "/wallet", nil, &w)
	if err == nil && !w.Unlocked {
		err = fmt.Errorf("siad: wallet of %s: %w; %s", n.API.Base.Host, system.ErrLocked, unlockHint)
	}
	return err
}

// identify adds the daemon's properties to the identity for the record.
func (n *node) identify(ctx context.Context, identity map[string]string) error {
	var v struct {
		Version string `json:"version"`
	}
	if err := n.API.Get(ctx, "/daemon/version", nil, &v); err != nil {
		return err
	}
	identity["version"], identity["currency"] = "siad "+v.Version, "SC"
	identity["redundancy"] = fmt.Sprintf("%d data + %d parity pieces", n.data, n.parity)
	identity["put"] = "uploadstream: accepted at redundancy 1"
	identity["get"] = "download with disablelocalfetch=true: from hosts"
	identity["connections"] = "the daemon keeps its sessions with hosts"
	return nil
}
