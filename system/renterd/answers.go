package renterd

import (
	"encoding/json"
	"fmt"

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

// uploadSettings is sent back as it came but for packing: fields that we do not
// know stay.
type uploadSettings map[string]json.RawMessage

func (s uploadSettings) packing() (enabled bool, err error) {
	var p struct {
		Enabled *bool `json:"enabled"`
	}
	if err := json.Unmarshal(s["packing"], &p); err != nil || p.Enabled == nil {
		return false, fmt.Errorf("settings/upload do not tell whether packing is on (%.80s)", s["packing"])
	}
	return *p.Enabled, nil
}

func (s uploadSettings) redundancy() (minimum, total int64, err error) {
	var r struct {
		Min   int64 `json:"minShards"`
		Total int64 `json:"totalShards"`
	}
	if err := json.Unmarshal(s["redundancy"], &r); err != nil || r.Min < 1 || r.Total < r.Min {
		return 0, 0, fmt.Errorf("settings/upload tell no redundancy (%.80s)", s["redundancy"])
	}
	return r.Min, r.Total, nil
}

// with is s with packing turned on or off.
func (s uploadSettings) with(enabled bool) (uploadSettings, error) {
	packing := map[string]json.RawMessage{}
	if err := json.Unmarshal(s["packing"], &packing); err != nil {
		return nil, fmt.Errorf("settings/upload: packing: %w", err)
	}
	packing["enabled"] = json.RawMessage("false")
	if enabled {
		packing["enabled"] = json.RawMessage("true")
	}
	text, err := json.Marshal(packing)
	if err != nil {
		return nil, err
	}
	out := uploadSettings{}
	for k, v := range s {
		out[k] = v
	}
	out["packing"] = text
	return out, nil
}

type buffer struct {
	Size    int64 `json:"size"`
	MaxSize int64 `json:"maxSize"`
}

type contract struct {
	Usability string       `json:"usability"`
	Archived  string       `json:"archivalReason"` // why it is not in use any more, such as renewed; empty: it is
	State     string       `json:"state"`          // pending until it is on the chain
	ID        string       `json:"id"`
	Size      float64      `json:"size"` // bytes; a figure that underflowed is no error here
	Price     sia.Hastings `json:"contractPrice"`
	Funds     sia.Hastings `json:"initialRenterFunds"`
	Spending  struct {
		Deletions   sia.Hastings `json:"deletions"`
		FundAccount sia.Hastings `json:"fundAccount"`
		SectorRoots sia.Hastings `json:"sectorRoots"`
		Uploads     sia.Hastings `json:"uploads"`
	} `json:"spending"`
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
