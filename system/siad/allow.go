package siad

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

// What an allowance is made of where neither the experiment nor the renter says:
// three months and fifty hosts, as the published load tests had it.
const (
	usualPeriod = 12960 // blocks
	usualHosts  = 50
)

// Allow implements system.Allower. siad answers 204 also when the wallet is
// locked or empty, and forms no contract then: so the wallet is looked at
// before, and the allowance read back.
func (n *node) Allow(ctx context.Context, a system.Allowance) error {
	if n.attached && !n.write {
		return fmt.Errorf("siad: set an allowance: %w", system.ErrReadOnly)
	}
	var w walletAnswer
	if err := n.api.get(ctx, "/wallet", nil, &w); err != nil {
		return err
	}
	if !w.Unlocked {
		return fmt.Errorf("siad: set an allowance: wallet of %s: %w; %s", n.api.base.Host, system.ErrLocked, unlockHint)
	}
	funds := a.Amount
	if funds == nil {
		funds = w.Confirmed.Int
	}
	if funds == nil || funds.Sign() <= 0 {
		return fmt.Errorf("siad: set an allowance: the wallet of %s is empty, and %v cannot be allowed; send it siacoins first", n.api.base.Host, funds)
	}
	if w.Confirmed.Int != nil && w.Confirmed.Cmp(funds) < 0 {
		return fmt.Errorf("siad: set an allowance of %v hastings: the wallet of %s has %v; allow less, or send it siacoins", funds, n.api.base.Host, w.Confirmed)
	}
	now, err := n.allowance(ctx)
	if err != nil {
		return err
	}
	want := allowed{Hosts: int64(a.Hosts), Period: a.Period, Renew: now.Renew}
	want.Funds.Int = funds
	if want.Hosts == 0 {
		want.Hosts = cmp.Or(now.Hosts, usualHosts)
	}
	if want.Period == 0 {
		want.Period = cmp.Or(now.Period, usualPeriod)
	}
	if want.Renew <= 0 || want.Renew >= want.Period {
		want.Renew = max(want.Period/2, 1)
	}
	err = n.api.post(ctx, "/renter", url.Values{
		"funds": {funds.String()}, "hosts": {strconv.FormatInt(want.Hosts, 10)},
		"period": {strconv.FormatInt(want.Period, 10)}, "renewwindow": {strconv.FormatInt(want.Renew, 10)},
	}, nil)
	if err != nil {
		return err
	}
	got, err := n.allowance(ctx)
	if err != nil {
		return err
	}
	if got.Funds.Int == nil || got.Funds.Cmp(funds) != 0 || got.Hosts != want.Hosts || got.Period != want.Period {
		return fmt.Errorf("siad: %s answered 204 to an allowance of %v hastings for %d hosts and %d blocks, and has one of %v for %d hosts and %d blocks",
			n.api.base.Host, funds, want.Hosts, want.Period, got.Funds, got.Hosts, got.Period)
	}
	return nil
}

// allowance is the one in force.
func (n *node) allowance(ctx context.Context) (allowed, error) {
	var r renterAnswer
	err := n.api.get(ctx, "/renter", nil, &r)
	return r.Settings.Allowance, err
}
