package siad

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Amounts in hastings.
const (
	hostFunds = "20000000000000000000000000000"   // 20 KS: collateral of many contracts
	enough    = "1000000000000000000000000000000" // 1 MS: for hosts and the allowance
)

// form makes a network of daemons that answer and know nothing yet. The order
// is siad's: each step silently does nothing before the one above is done.
func form(ctx context.Context, n *node, renter *daemon, hosts []*daemon, p plan) error {
	if err := sia.Each(hosts, func(h *daemon) error { return h.join(ctx, renter.rpc) }); err != nil {
		return err
	}
	if err := sia.Each(append([]*daemon{renter}, hosts...),
		func(d *daemon) error { return d.openWallet(ctx, p.wallet) }); err != nil {
		return err
	}
	if err := renter.api.Get(ctx, "/miner/start", nil, nil); err != nil { // a GET, although it changes something
		return err
	}
	if err := renter.funded(ctx, enough, "the miner's coins did not mature"); err != nil {
		return err
	}
	for _, h := range hosts { // one after another: each spends the change of the one before
		if err := h.pay(ctx, renter); err != nil {
			return err
		}
	}
	if err := sia.Each(hosts, func(h *daemon) error { return h.offer(ctx, p.hostSize) }); err != nil {
		return err
	}
	if err := n.contracts(ctx, hosts, p); err != nil {
		return err
	}
	return renter.api.Get(ctx, "/miner/stop", nil, nil)
}

// join connects to the peer that all connect to.
func (d *daemon) join(ctx context.Context, peer string) error {
	err := d.api.post(ctx, "/gateway/connect/"+peer, nil)
	if err != nil && strings.Contains(err.Error(), "already connected") {
		return nil
	}
	return err
}

func (d *daemon) openWallet(ctx context.Context, word string) error {
	password := url.Values{"encryptionpassword": {word}}
	if err := d.api.post(ctx, "/wallet/init", password); err != nil { // the answer is the seed: not kept
		return err
	}
	return d.api.post(ctx, "/wallet/unlock", password)
}

// funded waits until the wallet has at least so many hastings.
func (d *daemon) funded(ctx context.Context, least, what string) error {
	want, ok := new(big.Int).SetString(least, 10)
	if !ok {
		return fmt.Errorf("siad: %q is no amount", least)
	}
	return sia.Poll(ctx, name, what, func(ctx context.Context) (bool, string, error) {
		var w walletAnswer
		if err := d.api.Get(ctx, "/wallet", nil, &w); err != nil {
			return false, "", err
		}
		if w.Confirmed.Int == nil {
			return false, "no balance reported", nil
		}
		return w.Confirmed.Cmp(want) >= 0, "balance " + w.Confirmed.String(), nil
	})
}

// pay sends a host what it needs as collateral.
func (d *daemon) pay(ctx context.Context, renter *daemon) error {
	var to struct {
		Address string `json:"address"`
	}
	if err := d.api.Get(ctx, "/wallet/address", nil, &to); err != nil {
		return err
	}
	if to.Address == "" {
		return errors.New("siad: a host's wallet gives no address")
	}
	for range 2 { // a lost announcement locks the coins of one payment for many blocks
		err := renter.api.post(ctx, "/wallet/siacoins", url.Values{"amount": {hostFunds}, "destination": {to.Address}})
		if err != nil {
			return err
		}
	}
	return nil
}

// offer makes a host take contracts once it is paid.
func (d *daemon) offer(ctx context.Context, size int64) error {
	if err := d.funded(ctx, "1", "a host's coins were not confirmed"); err != nil {
		return err
	}
	if err := d.api.post(ctx, "/host/storage/folders/add", url.Values{"path": {d.folder},
		"size": {strconv.FormatInt(size, 10)}}); err != nil {
		return err
	}
	if err := d.api.post(ctx, "/host", url.Values{"acceptingcontracts": {"true"},
		"netaddress": {d.contact}}); err != nil {
		return err
	}
	return d.announce(ctx)
}

func (d *daemon) announce(ctx context.Context) error {
	return d.api.post(ctx, "/host/announce", url.Values{"netaddress": {d.contact}})
}

// announceAgain is the wait, some blocks long, after which an announcement is taken for
// lost: siad relays its transaction once, and about every third start loses one.
const announceAgain = 20 * time.Second

// awaitKnown waits until the renter knows all hosts, and has them announce themselves
// again each time it has waited so long without success.
func (n *node) awaitKnown(ctx context.Context, hosts []*daemon, again time.Duration) error {
	announced := time.Now()
	var refused error // a host may still lack coins that no lost announcement locks
	return sia.Poll(ctx, name, "the renter did not come to know its hosts", func(ctx context.Context) (bool, string,
		error) {
		var known hostsAnswer
		err := n.api.Get(ctx, "/hostdb/active", nil, &known)
		ok := len(known.Hosts) >= len(hosts)
		if err == nil && !ok && time.Since(announced) > again {
			refused = sia.Each(hosts, func(h *daemon) error {
				if known.has(h.contact) {
					return nil
				}
				return h.announce(ctx)
			})
			announced = time.Now()
		}
		state := fmt.Sprintf("%d of %d known", len(known.Hosts), len(hosts))
		if refused != nil {
			state += ", announcing again: " + refused.Error()
		}
		return ok, state, err
	})
}

// contracts sets the allowance once the hosts are known and waits for contracts.
func (n *node) contracts(ctx context.Context, hosts []*daemon, p plan) error {
	if err := n.awaitKnown(ctx, hosts, announceAgain); err != nil {
		return err
	}
	if err := n.api.post(ctx, "/renter", allowance(p)); err != nil {
		return err
	}
	return sia.Poll(ctx, name, "contracts were not formed", func(ctx context.Context) (bool, string, error) {
		r, err := n.uploadReady(ctx)
		return r.Ready, fmt.Sprintf("%d of %d contracts", r.Active, r.Needed), err
	})
}

// allowance is generous, so that money ends no experiment. All hosts are on one
// subnet, and siad forms one contract a subnet unless it is set otherwise.
func allowance(p plan) url.Values {
	return url.Values{
		"funds": {"5000000000000000000000000000"}, "hosts": {strconv.Itoa(p.hosts)},
		"period": {"200"}, "renewwindow": {"50"},
		"expectedstorage": {"1000000000"}, "expectedupload": {"10000000"}, "expecteddownload": {"10000000"},
		"expectedredundancy": {"2.0"}, "maxperiodchurn": {"10000000000"},
		"checkforipviolation": {"false"},
	}
}
