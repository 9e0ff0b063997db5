package siad

import (
	"context"
	"math/big"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Costs implements system.Coster. Spending is of the current allowance period.
func (n *node) Costs(ctx context.Context) (system.Costs, error) {
	var wallet walletAnswer
	var renter renterAnswer
	var contracts contractsAnswer
	for path, out := range map[string]any{"/wallet": &wallet, "/renter": &renter, "/renter/contracts": &contracts} {
		if err := n.api.get(ctx, path, nil, out); err != nil {
			return system.Costs{}, err
		}
	}
	m := renter.Metrics
	c := system.Costs{
		Currency: "SC", Decimals: sia.Decimals,
		Balance: wallet.Confirmed.Int, Locked: new(big.Int),
		Spent: []system.Spending{
			{Purpose: "upload", Amount: m.Upload.Int},
			{Purpose: "download", Amount: m.Download.Int},
			{Purpose: "storage", Amount: m.Storage.Int},
			{Purpose: "fees", Amount: m.Fees.Int},
			{Purpose: "accounts", Amount: m.FundAccount.Int},
			{Purpose: "maintenance", Amount: sum(m.Maintenance.Balance, m.Maintenance.Fund, m.Maintenance.Prices)},
		},
	}
	for _, one := range append(contracts.Active, contracts.Passive...) {
		if one.RenterFunds.Int != nil {
			c.Locked.Add(c.Locked, one.RenterFunds.Int)
		}
	}
	var prices pricesAnswer
	switch err := n.api.get(ctx, "/renter/prices", nil, &prices); {
	case notThere(err): // no hosts are known yet
		return c, nil
	case err != nil:
		return system.Costs{}, err
	}
	c.Prices = []system.Price{
		{Of: "storage", Per: "TB·month", Amount: prices.Storage.Int},
		{Of: "upload", Per: "TB", Amount: prices.Upload.Int},
		{Of: "download", Per: "TB", Amount: prices.Download.Int},
		{Of: "contracts", Per: "set of " + prices.Hosts.String(), Amount: prices.Contracts.Int},
	}
	return c, nil
}

// sum leaves out what the daemon did not tell.
func sum(amounts ...sia.Hastings) *big.Int {
	total := new(big.Int)
	for _, a := range amounts {
		if a.Int != nil {
			total.Add(total, a.Int)
		}
	}
	return total
}
