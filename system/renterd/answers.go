package renterd

import (
	"encoding/json"

	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// object is the bus's account of an object.
type object struct {
	Key   string `json:"key"` // with a slash in front
	Size  int64  `json:"size"`
	Slabs []struct {
		Slab struct {
			// Shards is absent while the slab lies in a buffer of the node.
			Shards []struct {
				Contracts map[string]json.RawMessage `json:"contracts"` // by host
			} `json:"shards"`
		} `json:"slab"`
		Length int64 `json:"length"`
	} `json:"slabs"` // none for an empty object
}

// onHosts is how many of an object's bytes lie in slabs with total shards, each
// of which some host has under contract.
func (o object) onHosts(total int64) (n int64) {
	for _, s := range o.Slabs {
		stored := int64(0)
		for _, shard := range s.Slab.Shards {
			if len(shard.Contracts) > 0 {
				stored++
			}
		}
		if stored >= total {
			n += s.Length
		}
	}
	return n
}

type objectsAnswer struct {
	HasMore    bool     `json:"hasMore"`
	NextMarker string   `json:"nextMarker"`
	Objects    []object `json:"objects"` // null when there are none
}

type bucket struct {
	Name string `json:"name"`
}

type uploadSettings struct {
	Packing struct {
		Enabled bool `json:"enabled"`
	} `json:"packing"`
	Redundancy struct {
		Min   int64 `json:"minShards"`
		Total int64 `json:"totalShards"`
	} `json:"redundancy"`
}

type buffer struct {
	Size int64 `json:"size"`
}

type contract struct {
	Usability string       `json:"usability"`
	Archived  string       `json:"archivalReason"` // why it is not in use any more, such as renewed; empty: it is
	State     string       `json:"state"`          // pending until it is on the chain
	ID        string       `json:"id"`
	Size      sia.Bytes    `json:"size"`
	Price     sia.Hastings `json:"contractPrice"`
	Funds     sia.Hastings `json:"initialRenterFunds"`
	Spending  struct {
		Deletions   sia.Hastings `json:"deletions"`
		FundAccount sia.Hastings `json:"fundAccount"`
		SectorRoots sia.Hastings `json:"sectorRoots"`
		Uploads     sia.Hastings `json:"uploads"`
	} `json:"spending"`
}

// account says what a contract pays for: it cost the money that was put into it and its
// price, which is paid on top; what the node says that it spent comes off the money in it.
func (c contract) account() sia.Account {
	s := c.Spending
	return sia.Account{
		Total:   c.Funds.Plus(c.Price),
		Unspent: c.Funds.Minus(s.Uploads, s.FundAccount, s.Deletions, s.SectorRoots),
		Parts: []sia.Amount{
			{Name: "fees", Is: c.Price}, {Name: "upload", Is: s.Uploads}, {Name: "accounts", Is: s.FundAccount},
			{Name: "deletions", Is: s.Deletions}, {Name: "roots", Is: s.SectorRoots},
		},
	}
}

type host struct {
	V2Settings struct {
		Prices struct {
			Contract sia.Hastings `json:"contractPrice"`
			Storage  sia.Hastings `json:"storagePrice"` // of a byte and a block
			Ingress  sia.Hastings `json:"ingressPrice"` // of a byte
			Egress   sia.Hastings `json:"egressPrice"`  // of a byte
		} `json:"prices"`
	} `json:"v2Settings"`
}
