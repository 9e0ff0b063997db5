package renterd

import (
	"context"
	"fmt"
	"math/big"
	"net/http"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Calls implements system.Monitored. Objects are those of the bucket, all else
// is the whole node's.
func (n *node) Calls() []system.Call {
	return []system.Call{
		{Name: "/bus/contracts", Read: n.readContracts},
		{Name: "/bus/stats/objects", Read: n.readObjects},
		{Name: "/bus/slabbuffers", Read: n.readBuffers},
		{Name: "/bus/wallet", Read: n.readWallet},
		{Name: "/bus/consensus/state", Read: n.readConsensus},
		{Name: "/bus/syncer/peers", Read: n.readPeers},
		{Name: "/bus/hosts", Read: n.readHosts},
	}
}

// allContracts asks for those that are not in use any more, too, with what they
// cost.
var allContracts = url.Values{"filtermode": {"all"}}

// readContracts sums up the active contracts, and beside them those that were
// renewed or are over: what such a one had used (ended), and what it had not
// (ended_unspent), which a renewal takes over into the new contract, and which
// else goes back to the wallet. What a contract cost is the money that was put
// into it and its price, which is paid on top; what the node says that it spent
// comes off the money in it.
func (n *node) readContracts(ctx context.Context) ([]system.Reading, error) {
	var all []contract // null before the first
	if err := n.api.get(ctx, n.api.url("bus/contracts", "", allContracts), &all); err != nil {
		return nil, err
	}
	var live, over sums
	size, count, absurd := 0.0, 0, ""
	for _, c := range all {
		switch {
		case c.Archived != "" && c.State == "pending":
			continue // it never came to the chain, and cost nothing
		case c.Archived != "":
			over.add(c)
			continue
		}
		count++
		if c.Size < 0 || c.Size >= 1<<62 {
			absurd = fmt.Sprintf("%.4g bytes in contract %.16s", c.Size, c.ID)
		}
		size += c.Size
		live.add(c)
	}
	out := []system.Reading{
		number(system.ReadContracts, float64(count)), {Name: system.ReadContractBytes, Value: size, Bad: absurd},
		amount(system.ReadSpent, &live.total), amount(system.ReadUnspent, &live.unspent),
	}
	out = append(out, live.purposes(system.ReadSpentPrefix)...)
	used := new(big.Int).Sub(&over.total, &over.unspent)
	out = append(out, amount(system.ReadEnded, used), amount(system.ReadEndedUnspent, &over.unspent))
	return append(out, over.purposes(system.ReadEndedPrefix)...), nil
}

// sums are what contracts cost, by purpose.
type sums struct {
	total, unspent, fees, upload, accounts, deletions, roots big.Int
}

func (s *sums) add(c contract) {
	add(&s.total, c.Funds, 1)
	add(&s.total, c.Price, 1)
	add(&s.fees, c.Price, 1)
	add(&s.unspent, c.Funds, 1)
	for _, p := range []struct {
		sum  *big.Int
		part sia.Hastings
	}{{&s.upload, c.Spending.Uploads}, {&s.accounts, c.Spending.FundAccount}, {&s.deletions, c.Spending.Deletions}, {&s.roots, c.Spending.SectorRoots}} {
		add(p.sum, p.part, 1)
		add(&s.unspent, p.part, -1)
	}
}

func (s *sums) purposes(prefix string) []system.Reading {
	return []system.Reading{
		amount(prefix+"fees", &s.fees), amount(prefix+"upload", &s.upload), amount(prefix+"accounts", &s.accounts),
		amount(prefix+"deletions", &s.deletions), amount(prefix+"roots", &s.roots),
	}
}

// readObjects reads the bucket's totals. absolute_bytes falls on delete and has
// nothing of what waits in buffers. uploaded_bytes is the sizes of the node's
// active contracts, whatever bucket is asked for; it lags by seconds and does not
// fall on delete. What the node calls unfinished objects are multipart uploads
// of S3 clients that were begun: ours, and all others that are under way, are not
// among them, so that the node does not tell how many there are.
func (n *node) readObjects(ctx context.Context) ([]system.Reading, error) {
	var s struct {
		Objects   *float64 `json:"numObjects"`
		Multipart *float64 `json:"numUnfinishedObjects"`
		Bytes     *float64 `json:"totalObjectsSize"`
		Sectors   *float64 `json:"totalSectorsSize"`
		Uploaded  *float64 `json:"totalUploadedSize"`
		Health    *float64 `json:"minHealth"`
	}
	if err := n.api.get(ctx, n.api.url("bus/stats/objects", "", n.query()), &s); err != nil {
		return nil, err
	}
	var out []system.Reading
	for _, r := range []struct {
		name  string
		value *float64
	}{
		{system.ReadFiles, s.Objects}, {"multipart_uploads", s.Multipart}, {system.ReadFileBytes, s.Bytes},
		{system.ReadAbsolute, s.Sectors}, {"uploaded_bytes", s.Uploaded}, {"health_min", s.Health},
	} {
		if r.value != nil {
			out = append(out, number(r.name, *r.value))
		}
	}
	return out, nil
}

// readBuffers returns how much data the node has accepted and not sent to hosts yet.
func (n *node) readBuffers(ctx context.Context) ([]system.Reading, error) {
	var all []buffer // null when there are none
	if err := n.api.get(ctx, n.api.url("bus/slabbuffers", "", nil), &all); err != nil {
		return nil, err
	}
	bytes := 0.0
	for _, b := range all {
		bytes += float64(b.Size)
	}
	return []system.Reading{number("buffers", float64(len(all))), number("buffered_bytes", bytes)}, nil
}

func (n *node) readWallet(ctx context.Context) (out []system.Reading, err error) {
	var w struct {
		Spendable   sia.Hastings `json:"spendable"` // without what unconfirmed transactions take
		Unconfirmed sia.Hastings `json:"unconfirmed"`
		Immature    sia.Hastings `json:"immature"`
	}
	if err := n.api.get(ctx, n.api.url("bus/wallet", "", nil), &w); err != nil {
		return nil, err
	}
	for _, r := range []struct {
		name string
		is   sia.Hastings
	}{{system.ReadBalance, w.Spendable}, {system.ReadIncoming, w.Unconfirmed}, {"immature", w.Immature}} {
		if r.is.Int != nil {
			out = append(out, amount(r.name, r.is.Int))
		}
	}
	return out, nil
}

func (n *node) readConsensus(ctx context.Context) ([]system.Reading, error) {
	var s struct {
		Synced bool     `json:"synced"`
		Height *float64 `json:"blockHeight"`
	}
	if err := n.api.get(ctx, n.api.url("bus/consensus/state", "", nil), &s); err != nil {
		return nil, err
	}
	out := []system.Reading{number(system.ReadSynced, 0)}
	if s.Synced {
		out[0].Value = 1
	}
	if s.Height != nil {
		out = append(out, number(system.ReadHeight, *s.Height))
	}
	return out, nil
}

func (n *node) readPeers(ctx context.Context) ([]system.Reading, error) {
	var peers []string
	if err := n.api.get(ctx, n.api.url("bus/syncer/peers", "", nil), &peers); err != nil {
		return nil, err
	}
	return []system.Reading{number(system.ReadPeers, float64(len(peers)))}, nil
}

// readHosts returns the number of hosts that uploads can go to, and the medians of
// their prices.
func (n *node) readHosts(ctx context.Context) ([]system.Reading, error) {
	hosts, err := n.hosts(ctx)
	if err != nil {
		return nil, err
	}
	out := []system.Reading{number(system.ReadHosts, float64(len(hosts)))}
	for _, p := range prices(hosts) {
		if p.Amount != nil {
			out = append(out, amount(system.ReadPricePrefix+p.Of, p.Amount))
		}
	}
	return out, nil
}

func (n *node) hosts(ctx context.Context) (all []host, err error) {
	ask := map[string]any{"offset": 0, "limit": pricedHosts, "filterMode": "allowed", "usabilityMode": "usable"}
	err = n.api.send(ctx, http.MethodPost, n.api.url("bus/hosts", "", nil), ask, &all)
	return all, err
}

func number(name string, value float64) system.Reading {
	return system.Reading{Name: name, Value: value}
}

func amount(name string, is *big.Int) system.Reading { return system.Money(name, is, sia.Decimals) }
