package renterd

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// connect returns an API without contacting the node. All its calls need the password.
func connect(base *url.URL, password string, from testbed.Host) *sia.API {
	return sia.Connect(sia.API{System: name, Base: base.JoinPath("/api"), Consensus: "/bus/consensus/state",
		Header: http.Header{}, Meanings: meanings()}, password, from)
}

func meanings() []sia.Meaning {
	return []sia.Meaning{
		{Status: http.StatusUnauthorized, Means: system.ErrAuth,
			Hint: "the variable that option `password` names must hold the API password"},
		{Text: "bucket not found", Hint: "set option `bucket` to one that is there"},
		{Text: "not enough hosts", Means: system.ErrTooFew, Hint: tooFewHint},
		{Text: "not enough contracts", Means: system.ErrTooFew, Hint: tooFewHint},
		// A host without room reports this in its line of the answer to an upload with a failed
		// slab.
		{Text: "host responded with error: failed to write sector: failed to read response: not enough storage",
			Means: system.ErrQuota},
		{Status: http.StatusNotFound, Means: system.ErrNotFound},
	}
}

const tooFewHint = "lower option `total_shards`, or give the node more contracts"

// object is the bus's report on an object.
type object struct {
	Key   string `json:"key"` // with a leading slash
	Size  int64  `json:"size"`
	Slabs []struct {
		Slab struct {
			// Shards is absent while the slab is in a buffer of the node.
			Shards []struct {
				Contracts map[string]json.RawMessage `json:"contracts"` // by host
			} `json:"shards"`
		} `json:"slab"`
		Length int64 `json:"length"`
	} `json:"slabs"` // none for an empty object
}

// onHosts returns how many of an object's bytes are in slabs with at least total shards on a host
// with a contract.
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
	Archived  string       `json:"archivalReason"` // why it is no longer in use, such as renewed; empty if it is
	State     string       `json:"state"`          // pending until it is on the chain
	ID        string       `json:"id"`
	Size      float64      `json:"size"`
	Price     sia.Hastings `json:"contractPrice"`
	Funds     sia.Hastings `json:"initialRenterFunds"`
	Spending  struct {
		Deletions   sia.Hastings `json:"deletions"`
		FundAccount sia.Hastings `json:"fundAccount"`
		SectorRoots sia.Hastings `json:"sectorRoots"`
		Uploads     sia.Hastings `json:"uploads"`
	} `json:"spending"`
}

// account returns the costs of a contract. It cost the funds that were put into it plus its price,
// which is paid on top; the reported spending is deducted from the funds.
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
			Storage  sia.Hastings `json:"storagePrice"` // per byte and block
			Ingress  sia.Hastings `json:"ingressPrice"` // per byte
			Egress   sia.Hastings `json:"egressPrice"`  // per byte
		} `json:"prices"`
	} `json:"v2Settings"`
}
