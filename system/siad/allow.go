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
	if err := n.MayWrite("set an allowance"); err != nil {
		return err
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("siad: set an allowance on %s: %w", n.api.Base.Host, fmt.Errorf(format, args...))
	}
	var w walletAnswer
	if err := n.api.Get(ctx, "/wallet", nil, &w); err != nil {
		return err
	}
	if err := n.api.unlocked(w); err != nil {
		return err
	}
	funds := a.Amount
	if funds == nil {
		funds = w.Confirmed.Int
	}
	if funds == nil || funds.Sign() <= 0 {
		return fail("the wallet is empty, and %v cannot be allowed; send it siacoins first", funds)
	}
	if w.Confirmed.Int != nil && w.Confirmed.Cmp(funds) < 0 {
		return fail("%v hastings, and the wallet has %v; allow less, or send it siacoins", funds, w.Confirmed)
	}
	now, err := n.allowance(ctx)
	if err != nil {
		return err
	}
	want := allowed{
		Hosts:  cmp.Or(int64(a.Hosts), now.Hosts, usualHosts),
		Period: cmp.Or(a.Period, now.Period, usualPeriod),
		Renew:  now.Renew,
	}
	if want.Renew <= 0 || want.Renew >= want.Period {
		want.Renew = max(want.Period/2, 1)
	}
	if err := n.api.post(ctx, "/renter", url.Values{
		"funds": {funds.String()}, "hosts": {strconv.FormatInt(want.Hosts, 10)},
		"period": {strconv.FormatInt(want.Period, 10)}, "renewwindow": {strconv.FormatInt(want.Renew, 10)},
	}); err != nil {
		return err
	}
	got, err := n.allowance(ctx)
	if err != nil {
		return err
	}
	if got.Funds.Int == nil || got.Funds.Cmp(funds) != 0 || got.Hosts != want.Hosts || got.Period != want.Period {
		return fail("siad answered 204 to %v hastings for %d hosts and %d blocks, and has %v for %d hosts and %d blocks",
			funds, want.Hosts, want.Period, got.Funds, got.Hosts, got.Period)
	}
	return nil
}

// allowance is the one in force.
func (n *node) allowance(ctx context.Context) (allowed, error) {
	var r renterAnswer
	err := n.api.Get(ctx, "/renter", nil, &r)
	return r.Settings.Allowance, err
}
