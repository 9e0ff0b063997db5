package siad

import (
	"context"
	"fmt"
	"regexp"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// attach checks what would otherwise show as an upload that goes nowhere.
func (n *node) attach(ctx context.Context, opt system.Options, identity map[string]string) error {
	if err := n.api.checkPassword(ctx); err != nil {
		return err
	}
	if err := n.api.Synced(ctx, "/consensus"); err != nil {
		return err
	}
	if err := n.pieces(ctx, opt); err != nil {
		return err
	}
	if n.Write { // reading needs neither a wallet nor contracts for uploads
		if err := n.unlocked(ctx); err != nil {
			return err
		}
		r, err := n.uploadReady(ctx)
		if err != nil {
			return err
		}
		if !r.Ready {
			return fmt.Errorf("siad: %s has %d contracts for uploads and needs %d: %w", n.api.Base.Host, r.Active,
				r.Needed, system.ErrTooFew)
		}
	}
	return n.identify(ctx, identity)
}

// pieces takes the redundancy from the options, or the renter's own.
func (n *node) pieces(ctx context.Context, opt system.Options) (err error) {
	if n.data, n.parity, err = sia.Pair(name, opt, "data_pieces", "parity_pieces"); err != nil || n.data > 0 {
		return err
	}
	var own readyAnswer
	if err := n.api.Get(ctx, "/renter/uploadready", nil, &own); err != nil {
		return err
	}
	if own.DataPieces < 1 || own.ParityPieces < 1 {
		return fmt.Errorf("siad: %s reports no default redundancy; set options `data_pieces` and `parity_pieces`",
			n.api.Base.Host)
	}
	n.data, n.parity = own.DataPieces, own.ParityPieces
	return nil
}

func (n *node) uploadReady(ctx context.Context) (r readyAnswer, err error) {
	err = n.api.Get(ctx, "/renter/uploadready", n.redundancy(), &r)
	return r, err
}

var before15 = regexp.MustCompile(`^(0|1\.[0-4])\.`)

// identify fills in what the record keeps of the daemon.
func (n *node) identify(ctx context.Context, identity map[string]string) error {
	version, err := n.api.version(ctx)
	if err != nil {
		return err
	}
	if before15.MatchString(version) {
		return fmt.Errorf("siad: %s is siad %s, whose reports are others: it must be 1.5 or later", n.api.Base.Host,
			version)
	}
	identity["version"], identity["currency"] = "siad "+version, "SC"
	identity["redundancy"] = fmt.Sprintf("%d data + %d parity pieces", n.data, n.parity)
	identity["put"] = "uploadstream: accepted at redundancy 1"
	identity["get"] = "download with disablelocalfetch=true: from hosts"
	identity["connections"] = "the daemon keeps its sessions with hosts"
	return nil
}
