package renterd

import (
	"context"
	"math/big"
	"net/http"
	"net/url"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Calls implements system.Monitored. Objects are those of the bucket, all else
// is the whole node's.
func (n *node) Calls() []system.Call {
	return []system.Call{
		sia.Report(n.api, "/bus/contracts", "/bus/contracts", allContracts(), readContracts),
		sia.Report(n.api, "/bus/stats/objects", "/bus/stats/objects", n.query(), bucketAnswer.readings),
		sia.Report(n.api, "/bus/slabbuffers", "/bus/slabbuffers", nil, readBuffers),
		sia.Report(n.api, "/bus/wallet", "/bus/wallet", nil, walletAnswer.readings),
		sia.Report(n.api, "/bus/consensus/state", "/bus/consensus/state", nil, consensusAnswer.readings),
		sia.Report(n.api, "/bus/syncer/peers", "/bus/syncer/peers", nil, func(peers []string) []system.Reading {
			return []system.Reading{sia.Number(system.ReadPeers, float64(len(peers)))}
		}),
		{Name: "/bus/hosts", Read: n.readHosts},
	}
}

// allContracts asks for those that are not in use any more, too, with what they
// cost.
func allContracts() url.Values { return url.Values{"filtermode": {"all"}} }

// readContracts sums up the active contracts, and beside them those that were
// renewed or are over: what such a one had used (ended), and what it had not
// (ended_unspent), which a renewal takes over into the new contract, and which
// else goes back to the wallet.
func readContracts(all []contract) []system.Reading {
	var live, over []contract
	var size sia.ByteSum
	for _, c := range all {
		switch {
		case c.Archived != "" && c.State == "pending": // it never came to the chain, and cost nothing
		case c.Archived != "":
			over = append(over, c)
		default:
			live = append(live, c)
			size.Add(c.Size, 1, c.ID)
		}
	}
	out := []system.Reading{sia.Number(system.ReadContracts, float64(len(live))),
		size.Reading(system.ReadContractBytes)}
	return append(append(out, accounts().Current(live)...), accounts().Ended(over)...)
}

func (b bucketAnswer) readings() (out []system.Reading) {
	for _, r := range []struct {
		name  string
		value *float64
	}{
		{system.ReadFiles, b.Objects}, {"multipart_uploads", b.Multipart}, {system.ReadFileBytes, b.Bytes},
		{system.ReadAbsolute, b.Sectors}, {"uploaded_bytes", b.Uploaded}, {"health_min", b.Health},
	} {
		if r.value != nil {
			out = append(out, sia.Number(r.name, *r.value))
		}
	}
	return out
}

// readBuffers returns how much data the node has accepted and not sent to hosts yet.
func readBuffers(all []buffer) []system.Reading {
	bytes := 0.0
	for _, b := range all {
		bytes += float64(b.Size)
	}
	return []system.Reading{sia.Number("buffers", float64(len(all))), sia.Number("buffered_bytes", bytes)}
}

func (w walletAnswer) readings() []system.Reading {
	return sia.Money(
		sia.Amount{Name: system.ReadBalance, Is: w.Spendable}, sia.Amount{Name: system.ReadIncoming, Is: w.Unconfirmed},
		sia.Amount{Name: "immature", Is: w.Immature},
	)
}

func (c consensusAnswer) readings() []system.Reading {
	out := []system.Reading{sia.Flag(system.ReadSynced, c.Synced)}
	if c.Height != nil {
		out = append(out, sia.Number(system.ReadHeight, *c.Height))
	}
	return out
}

// readHosts returns the number of hosts that uploads can go to, and the medians of
// their prices: of storing a terabyte for a month, of sending and of fetching one, and of
// a contract.
func (n *node) readHosts(ctx context.Context) ([]system.Reading, error) {
	hosts, err := n.hosts(ctx, "usable")
	if err != nil {
		return nil, err
	}
	out := []system.Reading{sia.Number(system.ReadHosts, float64(len(hosts)))}
	for _, p := range []struct {
		of    string
		times int64
		in    func(host) sia.Hastings
	}{
		{"storage", terabyte * blocksPerMonth, func(h host) sia.Hastings { return h.V2Settings.Prices.Storage }},
		{"upload", terabyte, func(h host) sia.Hastings { return h.V2Settings.Prices.Ingress }},
		{"download", terabyte, func(h host) sia.Hastings { return h.V2Settings.Prices.Egress }},
		{"contract", 1, func(h host) sia.Hastings { return h.V2Settings.Prices.Contract }},
	} {
		out = append(out, sia.Money(sia.Amount{Name: system.ReadPricePrefix + p.of,
			Is: sia.Hastings{Int: median(hosts, p.in, p.times)}})...)
	}
	return out, nil
}

// hosts are those that are known and allowed, of a usability.
func (n *node) hosts(ctx context.Context, usability string) (all []host, err error) {
	ask := map[string]any{"offset": 0, "limit": pricedHosts, "filterMode": "allowed", "usabilityMode": usability}
	err = n.api.Send(ctx, http.MethodPost, "/bus/hosts", nil, ask, &all)
	return all, err
}

// contracts are the active ones; the answer is null before the first.
func (n *node) contracts(ctx context.Context) (all []contract, err error) {
	err = n.api.Get(ctx, "/bus/contracts", nil, &all)
	return all, err
}

// Months and terabytes in the units of host prices.
const (
	blocksPerMonth = 144 * 30
	terabyte       = 1e12
	pricedHosts    = 1000
)

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
