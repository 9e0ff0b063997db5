package renterd

import (
	"context"
	"math/big"
	"net/http"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
)

// Stats implements system.Stats. Absolute is the sectors of the bucket's
// objects on hosts. `totalUploadedSize` lags by seconds and never falls, and
// what waits in slab buffers is in neither.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	h := struct {
		Objects *int64 `json:"numObjects"`
		Sectors *int64 `json:"totalSectorsSize"`
	}{}
	if err := n.api.get(ctx, n.api.url("bus/stats/objects", "", n.query()), &h); err != nil {
		return system.Holdings{}, err
	}
	return system.Holdings{Objects: told(h.Objects), Absolute: told(h.Sectors), Disk: -1, Entries: -1, Inodes: -1}, nil
}

func told(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// Months and terabytes in the units of host prices.
const (
	blocksPerMonth = 144 * 30
	terabyte       = 1e12
	pricedHosts    = 1000
)

// Costs implements system.Coster. Prices are the median of the usable hosts'.
func (n *node) Costs(ctx context.Context) (system.Costs, error) {
	var wallet struct {
		Spendable hastings `json:"spendable"`
	}
	if err := n.api.get(ctx, n.api.url("bus/wallet", "", nil), &wallet); err != nil {
		return system.Costs{}, err
	}
	contracts, err := n.api.contracts(ctx)
	if err != nil {
		return system.Costs{}, err
	}
	var hosts []host
	ask := map[string]any{"offset": 0, "limit": pricedHosts, "filterMode": "allowed", "usabilityMode": "usable"}
	if err := n.api.send(ctx, http.MethodPost, n.api.url("bus/hosts", "", nil), ask, &hosts); err != nil {
		return system.Costs{}, err
	}
	c := system.Costs{Currency: "SC", Decimals: 24, Balance: wallet.Spendable.Int, Locked: new(big.Int)}
	totals := map[string]*big.Int{}
	purposes := []string{"uploads", "fund account", "sector roots", "deletions", "contract prices"}
	for _, p := range purposes {
		totals[p] = new(big.Int)
	}
	for _, one := range contracts {
		add(c.Locked, one.Funds, 1)
		s := one.Spending
		for purpose, amount := range map[string]hastings{"uploads": s.Uploads, "fund account": s.FundAccount, "sector roots": s.SectorRoots, "deletions": s.Deletions} {
			add(totals[purpose], amount, 1)
			add(c.Locked, amount, -1)
		}
		add(totals["contract prices"], one.Price, 1) // paid on top of the contract's funds
	}
	for _, p := range purposes {
		c.Spent = append(c.Spent, system.Spending{Purpose: p, Amount: totals[p]})
	}
	if len(hosts) == 0 {
		return c, nil
	}
	for _, p := range []struct {
		of, per string
		times   int64
		in      func(host) hastings
	}{
		{"storage", "TB·month", terabyte * blocksPerMonth, func(h host) hastings { return h.V2Settings.Prices.Storage }},
		{"upload", "TB", terabyte, func(h host) hastings { return h.V2Settings.Prices.Ingress }},
		{"download", "TB", terabyte, func(h host) hastings { return h.V2Settings.Prices.Egress }},
		{"contract", "contract", 1, func(h host) hastings { return h.V2Settings.Prices.Contract }},
	} {
		c.Prices = append(c.Prices, system.Price{Of: p.of, Per: p.per, Amount: median(hosts, p.in, p.times)})
	}
	return c, nil
}

func add(total *big.Int, h hastings, sign int64) {
	if h.Int != nil {
		total.Add(total, new(big.Int).Mul(h.Int, big.NewInt(sign)))
	}
}

// median is the lower one of an even number; nil when no host tells it.
func median(hosts []host, of func(host) hastings, times int64) *big.Int {
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

// contracts are the active ones; the answer is null before the first.
func (a *api) contracts(ctx context.Context) (all []contract, err error) {
	err = a.get(ctx, a.url("bus/contracts", "", nil), &all)
	return all, err
}
