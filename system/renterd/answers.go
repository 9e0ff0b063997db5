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
		Enabled *bool `json:"enabled"`
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

// accounts says what a contract pays for: it cost the money that was put into it and its
// price, which is paid on top; what the node says that it spent comes off the money in it.
func accounts() sia.Accounts[contract] {
	return sia.Accounts[contract]{
		Total: func(c contract) sia.Hastings { return c.Funds.Plus(c.Price) },
		Unspent: func(c contract) sia.Hastings {
			s := c.Spending
			return c.Funds.Minus(s.Uploads, s.FundAccount, s.Deletions, s.SectorRoots)
		},
		Purposes: []sia.Purpose[contract]{
			{Name: "fees", Of: func(c contract) sia.Hastings { return c.Price }},
			{Name: "upload", Of: func(c contract) sia.Hastings { return c.Spending.Uploads }},
			{Name: "accounts", Of: func(c contract) sia.Hastings { return c.Spending.FundAccount }},
			{Name: "deletions", Of: func(c contract) sia.Hastings { return c.Spending.Deletions }},
			{Name: "roots", Of: func(c contract) sia.Hastings { return c.Spending.SectorRoots }},
		},
	}
}

// account is one of the worker's, with a host.
type account struct {
	Balance sia.Hastings `json:"balance"`
	Resync  bool         `json:"requiresSync"`
}

type walletAnswer struct {
	Spendable   sia.Hastings `json:"spendable"` // without what unconfirmed transactions take
	Unconfirmed sia.Hastings `json:"unconfirmed"`
	Immature    sia.Hastings `json:"immature"`
}

type consensusAnswer struct {
	Synced bool     `json:"synced"`
	Height *float64 `json:"blockHeight"`
}

// bucketAnswer is of the bucket. Absolute bytes fall on delete and have nothing of what
// waits in buffers. Uploaded bytes are the sizes of the node's active contracts, whatever
// bucket is asked for; they lag by seconds and do not fall on delete. Multipart uploads
// are those of S3 clients that were begun: ours, and all others that are under way, are
// not among them, so that the node does not report how many there are.
type bucketAnswer struct {
	Objects   *float64 `json:"numObjects"`
	Multipart *float64 `json:"numUnfinishedObjects"`
	Bytes     *float64 `json:"totalObjectsSize"`
	Sectors   *float64 `json:"totalSectorsSize"`
	Uploaded  *float64 `json:"totalUploadedSize"`
	Health    *float64 `json:"minHealth"`
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
