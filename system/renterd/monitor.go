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

// Calls implements system.Monitored. Objects are those of the bucket; everything else describes the
// whole node. The bucket's absolute bytes decrease on a delete and do not include data in buffers.
// Uploaded bytes are the sizes of the node's active contracts, whatever bucket is asked for; they
// lag by seconds and do not decrease on a delete. Multipart uploads are those that S3 clients have
// begun. They do not include the uploads of this run or any others in progress, so the node does
// not report how many there are. The spendable balance excludes what unconfirmed transactions take.
func (n *node) Calls() []system.Call {
	return []system.Call{
		sia.Report(n.API, "/bus/contracts", allContracts(), readContracts),
		sia.Fields(n.API, "/bus/stats/objects", n.query(), sia.Number("numObjects", system.ReadFiles),
			sia.Number("numUnfinishedObjects", "multipart_uploads"),
			sia.Number("totalObjectsSize", system.ReadFileBytes), sia.Number("totalSectorsSize", system.ReadAbsolute),
			sia.Number("totalUploadedSize", "uploaded_bytes"), sia.Number("minHealth", "health_min")),
		sia.Report(n.API, "/bus/slabbuffers", nil, readBuffers),
		sia.Fields(n.API, "/bus/wallet", nil, sia.Money("spendable", system.ReadBalance),
			sia.Money("unconfirmed", system.ReadIncoming), sia.Money("immature", "immature")),
		sia.Fields(n.API, "/bus/consensus/state", nil, sia.Flag("synced", system.ReadSynced),
			sia.Number("blockHeight", system.ReadHeight)),
		sia.Report(n.API, "/bus/syncer/peers", nil, func(peers []string) []system.Reading {
			return []system.Reading{sia.Value(system.ReadPeers, float64(len(peers)))}
		}),
		{Name: "/bus/hosts", Read: n.readHosts},
	}
}

// allContracts returns the query that includes contracts that are no longer in use, with their
// costs.
func allContracts() url.Values { return url.Values{"filtermode": {"all"}} }

// readContracts sums up the active contracts and, separately, those that were renewed or are over:
// what they had used (ended) and what they had not used (ended_unspent). A renewal takes the latter
// over into the new contract; otherwise it goes back to the wallet.
func readContracts(all []contract) []system.Reading {
	var live, over []contract
	var size float64
	for _, c := range all {
		switch {
		case c.Archived != "" && c.State == "pending": // it never got onto the chain, and cost nothing
		case c.Archived != "":
			over = append(over, c)
		default:
			live = append(live, c)
			size += c.Size
		}
	}
	return slices.Concat([]system.Reading{sia.Value(system.ReadContracts, float64(len(live))),
		sia.Value(system.ReadContractBytes, size)}, sia.Spent(live, contract.account),
		sia.Ended(over, contract.account))
}

// readBuffers returns how much data the node has accepted but not yet sent to hosts.
func readBuffers(all []buffer) []system.Reading {
	bytes := 0.0
	for _, b := range all {
		bytes += float64(b.Size)
	}
	return []system.Reading{sia.Value("buffers", float64(len(all))), sia.Value("buffered_bytes", bytes)}
}

// readHosts returns the number of hosts that can take uploads, and the medians of their prices: for
// storing a terabyte for a month, for uploading and for downloading one, and for a contract.
func (n *node) readHosts(ctx context.Context) ([]system.Reading, error) {
	hosts, err := n.hosts(ctx, "usable")
	if err != nil {
		return nil, err
	}
	out := []system.Reading{sia.Value(system.ReadHosts, float64(len(hosts)))}
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
		var all []*big.Int
		for _, h := range hosts {
			if a := p.in(h); a.Int != nil {
				all = append(all, a.Int)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, (*big.Int).Cmp)
		median := new(big.Int).Mul(all[(len(all)-1)/2], big.NewInt(p.times)) // the lower of two middle values
		out = append(out, system.Money(system.ReadPricePrefix+p.of, median))
	}
	return out, nil
}

// hosts returns the known and allowed hosts with this usability, at most pricedHosts.
func (n *node) hosts(ctx context.Context, usability string) (all []host, err error) {
	ask := map[string]any{"offset": 0, "limit": pricedHosts, "filterMode": "allowed", "usabilityMode": usability}
	err = n.API.Send(ctx, http.MethodPost, "/bus/hosts", nil, ask, &all)
	return all, err
}

// contracts returns the active contracts. The answer is null before the first one.
func (n *node) contracts(ctx context.Context) (all []contract, err error) {
	err = n.API.Get(ctx, "/bus/contracts", nil, &all)
	return all, err
}

// Months and terabytes, in units of host prices.
const (
	blocksPerMonth = 144 * 30
	terabyte       = 1e12
	pricedHosts    = 1000
)
