package siad

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Calls implements system.Monitored. The first three are those of which the
// load-test reports of 2018 give the latency. They ask for all that the renter
// has, also what others store in it. None of them needs the password.
func (n *node) Calls() []system.Call {
	return []system.Call{
		{Name: "/renter/contracts", Read: n.readContracts},
		{Name: "/renter/files", Read: n.readFiles},
		{Name: "/wallet", Read: n.readWallet},
		{Name: "/renter", Read: n.readRenter},
		{Name: "/renter/prices", Read: n.readPrices},
		{Name: "/hostdb/active", Read: n.readHosts},
		{Name: "/consensus", Read: n.readConsensus},
		{Name: "/gateway", Read: n.readGateway},
	}
}

// readContracts sums up the contracts that are not over. Old releases tell them
// as active and inactive ones, newer as active and passive ones, and all of them
// in a list of its own; each counts once. One that was refreshed, which is to say
// replaced in the period for lack of money, has a list of its own: what it cost
// counts, its data are the new one's. One that was renewed or has ended leaves
// these sums: what it had used is reported beside them (ended), what it had not used
// goes back to the wallet (ended_unspent, for as long as the renter keeps such
// contracts in mind, also when it has come back). Releases that do not know the
// question leave those contracts out of all lists, and there is no reading of them.
//
// siad 1.5 pays for calls of its own from accounts with hosts and says what
// went there (fund account, maintenance): without it the parts do not make the
// total.
func (n *node) readContracts(ctx context.Context) ([]system.Reading, error) {
	var answer contractsAnswer
	if err := n.api.get(ctx, "/renter/contracts", allContracts, &answer); err != nil {
		return nil, err
	}
	var held count
	current := answer.current()
	good, toldGood := 0, len(current) > 0
	for _, c := range current {
		held.add(c.Size, c.ID)
		toldGood = toldGood && c.Good != nil
		if c.Good != nil && *c.Good {
			good++
		}
	}
	all := append(current, answer.Refreshed...)
	live := sumsOf(all)
	out := []system.Reading{number(system.ReadContracts, float64(len(current))), held.reading(system.ReadContractBytes)}
	if toldGood {
		out = append(out, number(system.ReadGoodContracts, float64(good)))
	}
	out = append(out, live.total.reading(system.ReadSpent, len(all)), live.unspent.reading(system.ReadUnspent, len(all)))
	out = append(out, live.purposes(system.ReadSpentPrefix, len(all))...)
	ended, told := answer.ended()
	if !told {
		return out, nil
	}
	over := sumsOf(ended)
	total, rest := over.total.reading(system.ReadEnded, len(ended)), over.unspent.reading(system.ReadEndedUnspent, len(ended))
	used := system.Money(system.ReadEnded, new(big.Int).Sub(total.Amount, rest.Amount), sia.Decimals)
	used.Bad = cmp.Or(total.Bad, rest.Bad)
	return append(append(out, used, rest), over.purposes(system.ReadEndedPrefix, len(ended))...), nil
}

// allContracts asks for those that are over, too, with what they cost.
var allContracts = url.Values{"disabled": {"true"}, "expired": {"true"}, "recoverable": {"true"}}

// sums are what contracts cost, by purpose.
type sums struct {
	total, unspent, fees, storage, upload, download, accounts, maintenance amounts
}

func sumsOf(all []contract) *sums {
	s := &sums{}
	for _, c := range all {
		s.total.add(c.Total)
		s.unspent.add(c.RenterFunds)
		s.fees.add(c.Fees)
		s.storage.add(c.Storage)
		s.upload.add(c.Upload)
		s.download.add(c.Download)
		s.accounts.add(c.FundAccount)
		s.maintenance.add(c.Maintenance.Balance, c.Maintenance.Fund, c.Maintenance.Prices)
	}
	return s
}

func (s *sums) purposes(prefix string, contracts int) []system.Reading {
	out := []system.Reading{
		s.fees.reading(prefix+"fees", contracts), s.storage.reading(prefix+"storage", contracts),
		s.upload.reading(prefix+"upload", contracts), s.download.reading(prefix+"download", contracts),
	}
	if s.accounts.told > 0 { // before 1.5 there is no such thing
		out = append(out, s.accounts.reading(prefix+"accounts", contracts), s.maintenance.reading(prefix+"maintenance", contracts))
	}
	return out
}

// readFiles looks at one file after the other and keeps none of them: 50,000
// make an answer of 25 MB.
func (n *node) readFiles(ctx context.Context) ([]system.Reading, error) {
	var files, uploads, below int
	var sent count
	var bytes share
	var redundancy spread
	full := float64(n.data+n.parity) / float64(n.data)
	err := n.api.list(ctx, "/renter/files", "files", func(d *json.Decoder) error {
		var f monitoredFile
		if err := d.Decode(&f); err != nil {
			return err
		}
		if n.isAside(f.SiaPath) {
			return nil
		}
		files++
		whole := f.Progress >= 100
		if !whole {
			uploads++
		}
		sent.add(f.UploadedBytes, f.SiaPath)
		bytes.add(f.FileSize, f.Progress/100, f.SiaPath)
		if whole && f.FileSize.n > 0 {
			redundancy.add(f.Redundancy)
			if f.Health != nil && *f.Health > tolerance || f.Health == nil && f.Redundancy < full-tolerance {
				below++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := []system.Reading{
		number(system.ReadFiles, float64(files)), number(system.ReadUploads, float64(uploads)),
		bytes.reading(system.ReadFileBytes), sent.reading(system.ReadAbsolute),
		number(system.ReadBelow, float64(below)),
	}
	return append(out, redundancy.readings()...), nil
}

// tolerance is of redundancies and healths, which the daemon computes in
// floating point.
const tolerance = 1e-6

func (n *node) readWallet(ctx context.Context) ([]system.Reading, error) {
	var w walletAnswer
	if err := n.api.get(ctx, "/wallet", nil, &w); err != nil {
		return nil, err
	}
	out := []system.Reading{flag(system.ReadUnlocked, w.Unlocked)}
	return append(out, money(
		told{system.ReadBalance, w.Confirmed}, told{system.ReadOutgoing, w.Outgoing}, told{system.ReadIncoming, w.Incoming},
	)...), nil
}

// readRenter reads the renter's own account of its allowance. Its sums are of
// the current period and go by other rules than those of the contracts, so that
// they have names of their own. `currentperiod` is left out: it underflows on
// young chains.
func (n *node) readRenter(ctx context.Context) ([]system.Reading, error) {
	var r renterAnswer
	if err := n.api.get(ctx, "/renter", nil, &r); err != nil {
		return nil, err
	}
	var out []system.Reading
	if period := r.Settings.Allowance.Period; period > 0 {
		out = append(out, number(system.ReadPeriod, float64(period)))
	}
	return append(out, money(
		told{"allowance", r.Settings.Allowance.Funds}, told{"allowance_unspent", r.Metrics.Unspent},
		told{"period_contracts", r.Metrics.Contracts}, told{"period_withheld", r.Metrics.Withheld},
		told{"period_previous", r.Metrics.Previous},
	)...), nil
}

func (n *node) readPrices(ctx context.Context) ([]system.Reading, error) {
	var p pricesAnswer
	if err := n.api.get(ctx, "/renter/prices", nil, &p); err != nil {
		return nil, err
	}
	return money(
		told{system.ReadPricePrefix + "storage", p.Storage}, told{system.ReadPricePrefix + "upload", p.Upload},
		told{system.ReadPricePrefix + "download", p.Download}, told{system.ReadPricePrefix + "contracts", p.Contracts},
	), nil
}

func (n *node) readHosts(ctx context.Context) ([]system.Reading, error) {
	hosts := 0
	err := n.api.list(ctx, "/hostdb/active", "hosts", func(d *json.Decoder) error {
		hosts++
		return d.Decode(&struct{}{})
	})
	if err != nil {
		return nil, err
	}
	return []system.Reading{number(system.ReadHosts, float64(hosts))}, nil
}

func (n *node) readConsensus(ctx context.Context) ([]system.Reading, error) {
	var c consensusAnswer
	if err := n.api.get(ctx, "/consensus", nil, &c); err != nil {
		return nil, err
	}
	height := number(system.ReadHeight, 0)
	var err error
	if height.Value, err = c.Height.Float64(); err != nil {
		height.Bad = fmt.Sprintf("not a number: %q", c.Height)
	}
	return []system.Reading{flag(system.ReadSynced, c.Synced), height}, nil
}

func (n *node) readGateway(ctx context.Context) ([]system.Reading, error) {
	var g struct {
		Peers []struct{} `json:"peers"` // null when there are none
	}
	if err := n.api.get(ctx, "/gateway", nil, &g); err != nil {
		return nil, err
	}
	return []system.Reading{number(system.ReadPeers, float64(len(g.Peers)))}, nil
}

func number(name string, value float64) system.Reading {
	return system.Reading{Name: name, Value: value}
}

func flag(name string, is bool) system.Reading {
	if is {
		return number(name, 1)
	}
	return number(name, 0)
}

type told struct {
	name   string
	amount sia.Hastings
}

// money leaves out what the daemon did not tell.
func money(all ...told) (out []system.Reading) {
	for _, t := range all {
		if t.amount.Int != nil {
			out = append(out, system.Money(t.name, t.amount.Int, sia.Decimals))
		}
	}
	return out
}
