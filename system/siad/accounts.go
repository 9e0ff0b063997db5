package siad

import (
	"context"
	"math/big"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// Stats implements system.Stats. Absolute is what the renter has sent to hosts
// for the files it still has: whole sectors, every piece. Disk, entries and
// inodes are those of the hosts' storage folders, when we have started them.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	files, err := n.files(ctx)
	if err != nil {
		return system.Holdings{}, err
	}
	h := system.Holdings{Objects: int64(len(files)), Disk: -1, Entries: -1, Inodes: -1}
	for _, f := range files {
		h.Absolute += int64(f.UploadedBytes)
	}
	if len(n.stores) > 0 {
		on, err := disk.Usage(n.stores...)
		if err != nil {
			return system.Holdings{}, err
		}
		h.Disk, h.Entries, h.Inodes = on.Disk, on.Entries, on.Inodes
	}
	return h, nil
}

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
		Currency: "SC", Decimals: 24,
		Balance: wallet.Confirmed.Int, Locked: new(big.Int),
		Spent: []system.Spending{
			{Purpose: "upload", Amount: m.Upload.Int},
			{Purpose: "download", Amount: m.Download.Int},
			{Purpose: "storage", Amount: m.Storage.Int},
			{Purpose: "fees", Amount: m.Fees.Int},
			{Purpose: "fund account", Amount: m.FundAccount.Int},
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
func sum(amounts ...hastings) *big.Int {
	total := new(big.Int)
	for _, a := range amounts {
		if a.Int != nil {
			total.Add(total, a.Int)
		}
	}
	return total
}
