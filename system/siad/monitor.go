package siad

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Calls implements system.Monitored. The first three are those of which the
// load-test reports of 2018 give the latency. They ask for all that the renter
// has, also what others store in it. None of them needs the password.
func (n *node) Calls() []system.Call {
	a := n.api.API
	return []system.Call{
		sia.Report(a, "/renter/contracts", "/renter/contracts", allContracts(), contractsAnswer.readings),
		{Name: "/renter/files", Read: n.readFiles},
		sia.Report(a, "/wallet", "/wallet", nil, walletAnswer.readings),
		sia.Report(a, "/renter", "/renter", nil, renterAnswer.readings),
		sia.Report(a, "/renter/prices", "/renter/prices", nil, pricesAnswer.readings),
		{Name: "/hostdb/active", Read: n.readHosts},
		sia.Report(a, "/consensus", "/consensus", nil, consensusAnswer.readings),
		sia.Report(a, "/gateway", "/gateway", nil, gatewayAnswer.readings),
	}
}

// allContracts asks for those that are over, too, with what they cost.
func allContracts() url.Values {
	return url.Values{"disabled": {"true"}, "expired": {"true"}, "recoverable": {"true"}}
}

// readings sums up the contracts that are not over. One that was refreshed, which is to
// say replaced in the period for lack of money, has a list of its own: what it cost
// counts, its data are the new one's. One that was renewed or has ended leaves
// these sums: what it had used is reported beside them (ended), what it had not used
// goes back to the wallet (ended_unspent, for as long as the renter keeps such
// contracts in mind, also when it has come back).
func (a contractsAnswer) readings() []system.Reading {
	var held sia.ByteSum
	current := slices.Concat(a.Active, a.Passive)
	good := 0
	for _, c := range current {
		held.Add(c.Size, 1, c.ID)
		if c.Good {
			good++
		}
	}
	out := []system.Reading{
		sia.Number(system.ReadContracts, float64(len(current))), held.Reading(system.ReadContractBytes),
		sia.Number(system.ReadGoodContracts, float64(good)),
	}
	out = append(out, accounts().Current(append(current, a.Refreshed...))...)
	return append(out, accounts().Ended(slices.Concat(a.Disabled, a.Expired, a.ExpiredRefreshed))...)
}

// tolerance is of redundancies and healths, which the daemon computes in
// floating point.
const tolerance = 1e-6

// readFiles looks at one file after the other.
func (n *node) readFiles(ctx context.Context) ([]system.Reading, error) {
	var files, uploads, whole, below int
	var sent, bytes sia.ByteSum
	var sum, low, high float64 // redundancies of whole files
	err := n.files(ctx, func(f file) error {
		files++
		sent.Add(f.UploadedBytes, 1, f.SiaPath)
		bytes.Add(f.FileSize, f.Progress/100, f.SiaPath)
		if f.Progress < 100 {
			uploads++
			return nil
		}
		if f.FileSize.N == 0 {
			return nil
		}
		if whole++; whole == 1 {
			low, high = f.Redundancy, f.Redundancy
		}
		sum, low, high = sum+f.Redundancy, min(low, f.Redundancy), max(high, f.Redundancy)
		if f.Health > tolerance {
			below++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := []system.Reading{
		sia.Number(system.ReadFiles, float64(files)), sia.Number(system.ReadUploads, float64(uploads)),
		bytes.Reading(system.ReadFileBytes), sent.Reading(system.ReadAbsolute), sia.Number(system.ReadBelow,
			float64(below)),
	}
	if whole > 0 {
		out = append(out, sia.Number(system.ReadRedundancyMean, sum/float64(whole)),
			sia.Number(system.ReadRedundancyMin, low), sia.Number(system.ReadRedundancyMax, high))
	}
	return out, nil
}

func (w walletAnswer) readings() []system.Reading {
	return append(sia.Money(
		sia.Amount{Name: system.ReadBalance, Is: w.Confirmed}, sia.Amount{Name: system.ReadOutgoing, Is: w.Outgoing},
		sia.Amount{Name: system.ReadIncoming, Is: w.Incoming},
	), sia.Flag(system.ReadUnlocked, w.Unlocked))
}

// readings are the renter's own account of its allowance. Its sums are of
// the current period and go by other rules than those of the contracts, so that
// they have names of their own.
func (r renterAnswer) readings() []system.Reading {
	out := sia.Money(
		sia.Amount{Name: "allowance", Is: r.Settings.Allowance.Funds},
		sia.Amount{Name: "allowance_unspent", Is: r.Metrics.Unspent},
		sia.Amount{Name: "period_contracts", Is: r.Metrics.Contracts},
		sia.Amount{Name: "period_withheld", Is: r.Metrics.Withheld},
		sia.Amount{Name: "period_previous", Is: r.Metrics.Previous},
	)
	if period := r.Settings.Allowance.Period; period > 0 {
		out = append(out, sia.Number(system.ReadPeriod, float64(period)))
	}
	return out
}

func (p pricesAnswer) readings() []system.Reading {
	return sia.Money(
		sia.Amount{Name: system.ReadPricePrefix + "storage", Is: p.Storage},
		sia.Amount{Name: system.ReadPricePrefix + "upload", Is: p.Upload},
		sia.Amount{Name: system.ReadPricePrefix + "download", Is: p.Download},
		sia.Amount{Name: system.ReadPricePrefix + "contracts", Is: p.Contracts},
	)
}

func (n *node) readHosts(ctx context.Context) ([]system.Reading, error) {
	hosts := 0
	err := n.api.List(ctx, "/hostdb/active", "hosts", func(d *json.Decoder) error {
		hosts++
		return d.Decode(&struct{}{})
	})
	if err != nil {
		return nil, err
	}
	return []system.Reading{sia.Number(system.ReadHosts, float64(hosts))}, nil
}

func (c consensusAnswer) readings() []system.Reading {
	height := sia.Number(system.ReadHeight, 0)
	var err error
	if height.Value, err = c.Height.Float64(); err != nil {
		height.Bad = fmt.Sprintf("not a number: %q", c.Height)
	}
	return []system.Reading{sia.Flag(system.ReadSynced, c.Synced), height}
}

func (g gatewayAnswer) readings() []system.Reading {
	return []system.Reading{sia.Number(system.ReadPeers, float64(len(g.Peers)))}
}
