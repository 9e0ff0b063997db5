package renterd

import (
	"context"
	"math/big"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Months and terabytes in the units of host prices.
const (
	blocksPerMonth = 144 * 30
	terabyte       = 1e12
	pricedHosts    = 1000
)

// Costs implements system.Coster. Prices are the median of the usable hosts'.
func (n *node) Costs(ctx context.Context) (system.Costs, error) {
	var wallet struct {
		Spendable sia.Hastings `json:"spendable"`
	}
	if err := n.api.get(ctx, n.api.url("bus/wallet", "", nil), &wallet); err != nil {
		return system.Costs{}, err
	}
	contracts, err := n.api.contracts(ctx)
	if err != nil {
		return system.Costs{}, err
	}
	hosts, err := n.hosts(ctx)
	if err != nil {
		return system.Costs{}, err
	}
	c := system.Costs{Currency: "SC", Decimals: sia.Decimals, Balance: wallet.Spendable.Int, Locked: new(big.Int)}
	totals := map[string]*big.Int{}
	purposes := []string{"uploads", "fund account", "sector roots", "deletions", "contract prices"}
	for _, p := range purposes {
		totals[p] = new(big.Int)
	}
	for _, one := range contracts {
		add(c.Locked, one.Funds, 1)
		s := one.Spending
		for purpose, amount := range map[string]sia.Hastings{"uploads": s.Uploads, "fund account": s.FundAccount, "sector roots": s.SectorRoots, "deletions": s.Deletions} {
			add(totals[purpose], amount, 1)
			add(c.Locked, amount, -1)
		}
		add(totals["contract prices"], one.Price, 1) // paid on top of the contract's funds
	}
	for _, p := range purposes {
		c.Spent = append(c.Spent, system.Spending{Purpose: p, Amount: totals[p]})
	}
	c.Prices = prices(hosts)
	return c, nil
}

// prices are the medians of hosts'; none without hosts.
func prices(hosts []host) (out []system.Price) {
	if len(hosts) == 0 {
		return nil
	}
	for _, p := range []struct {
		of, per string
		times   int64
		in      func(host) sia.Hastings
	}{
		{"storage", "TB·month", terabyte * blocksPerMonth, func(h host) sia.Hastings { return h.V2Settings.Prices.Storage }},
		{"upload", "TB", terabyte, func(h host) sia.Hastings { return h.V2Settings.Prices.Ingress }},
		{"download", "TB", terabyte, func(h host) sia.Hastings { return h.V2Settings.Prices.Egress }},
		{"contract", "contract", 1, func(h host) sia.Hastings { return h.V2Settings.Prices.Contract }},
	} {
		out = append(out, system.Price{Of: p.of, Per: p.per, Amount: median(hosts, p.in, p.times)})
	}
	return out
}

func add(total *big.Int, h sia.Hastings, sign int64) {
	if h.Int != nil {
		total.Add(total, new(big.Int).Mul(h.Int, big.NewInt(sign)))
	}
}

// median is the lower of the two middle values of an even number of hosts; nil when
// no host reports a value.
func median(hosts []host, of func(host) sia.Hastings, times int64) *big.Int {
	var all []*big.Int
	for _, h := range hosts {
		if a := of(h); a.Int != nil {
			all = append(all, a.Int)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, (*big.Int).Cmp)
	return new(big.Int).Mul(all[(len(all)-1)/2], big.NewInt(times))
}
