package siad

import (
	"context"
	"math"
	"net/url"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Calls implements system.Monitored. The first three calls are those whose latencies the load-test
// reports of 2018 give. They cover all that the renter has, including what others have stored in
// it. None of them needs the password. The account of the allowance covers the current period and
// follows other rules than that of the contracts, so its readings have their own names.
func (n *node) Calls() []system.Call {
	fields := func(path string, fields ...sia.Field) system.Call { return sia.Fields(n.API, path, nil, fields...) }
	return []system.Call{
		sia.Report(n.API, "/renter/contracts", allContracts(), contractsAnswer.readings),
		{Name: "/renter/files", Read: n.readFiles},
		fields("/wallet", sia.Money("confirmedsiacoinbalance", system.ReadBalance),
			sia.Money("unconfirmedoutgoingsiacoins", system.ReadOutgoing),
			sia.Money("unconfirmedincomingsiacoins", system.ReadIncoming),
			sia.Flag("unlocked", system.ReadUnlocked)),
		fields("/renter", sia.Money("settings.allowance.funds", "allowance"),
			sia.Money("financialmetrics.unspent", "allowance_unspent"),
			sia.Money("financialmetrics.contractspending", "period_contracts"),
			sia.Money("financialmetrics.withheldfunds", "period_withheld"),
			sia.Money("financialmetrics.previousspending", "period_previous"),
			sia.Number("settings.allowance.period", system.ReadPeriod)),
		fields("/renter/prices", sia.Money("storageterabytemonth", system.ReadPricePrefix+"storage"),
			sia.Money("uploadterabyte", system.ReadPricePrefix+"upload"),
			sia.Money("downloadterabyte", system.ReadPricePrefix+"download"),
			sia.Money("formcontracts", system.ReadPricePrefix+"contracts")),
		fields("/hostdb/active", sia.Length("hosts", system.ReadHosts)),
		fields("/consensus", sia.Flag("synced", system.ReadSynced),
			sia.Number("height", system.ReadHeight)),
		fields("/gateway", sia.Length("peers", system.ReadPeers)),
	}
}

// allContracts returns the query that includes contracts that are over, with their costs.
func allContracts() url.Values {
	return url.Values{"disabled": {"true"}, "expired": {"true"}, "recoverable": {"true"}}
}

// readings sums up the contracts that are not over. A refreshed contract, which was replaced within
// the period for lack of money, is in a list of its own: its costs count here, and its data count
// for the new contract. A contract that was renewed or has ended is not in these sums: what it had
// used is reported separately (ended). What it had not used goes back to the wallet; it is reported
// (ended_unspent) as long as the renter remembers such contracts, even after it has come back.
func (a contractsAnswer) readings() []system.Reading {
	var held float64
	current := slices.Concat(a.Active, a.Passive)
	good := 0
	for _, c := range current {
		held += c.Size
		if c.Good {
			good++
		}
	}
	return slices.Concat([]system.Reading{
		sia.Value(system.ReadContracts, float64(len(current))), sia.Value(system.ReadContractBytes, held),
		sia.Value(system.ReadGoodContracts, float64(good)),
	}, sia.Spent(append(current, a.Refreshed...), contract.account),
		sia.Ended(slices.Concat(a.Disabled, a.Expired, a.ExpiredRefreshed), contract.account))
}

// tolerance applies to redundancy and health, which the daemon computes in floating point.
const tolerance = 1e-6

// readFiles sums up the files in a single pass.
func (n *node) readFiles(ctx context.Context) ([]system.Reading, error) {
	var files, uploads, whole, below int
	var sent, bytes, sum, low, high float64 // the last three: redundancies of completely uploaded files
	err := n.files(ctx, func(f file) error {
		files++
		sent += f.UploadedBytes // the collector leaves out a sum that an underflowed count is part of
		bytes += math.Floor(f.FileSize * min(f.Progress/100, 1))
		if f.Progress < 100 {
			uploads++
			return nil
		}
		if f.FileSize == 0 {
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
		sia.Value(system.ReadFiles, float64(files)), sia.Value(system.ReadUploads, float64(uploads)),
		sia.Value(system.ReadFileBytes, bytes), sia.Value(system.ReadAbsolute, sent),
		sia.Value(system.ReadBelow, float64(below)),
	}
	if whole > 0 {
		out = append(out, sia.Value(system.ReadRedundancyMean, sum/float64(whole)),
			sia.Value(system.ReadRedundancyMin, low), sia.Value(system.ReadRedundancyMax, high))
	}
	return out, nil
}
