package siasim

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

type uploadSettings struct {
	Packing struct {
		Enabled bool  `json:"enabled"`
		Soft    int64 `json:"slabBufferMaxSizeSoft"`
	} `json:"packing"`
	Redundancy struct {
		Min   int `json:"minShards"`
		Total int `json:"totalShards"`
	} `json:"redundancy"`
}

type bucketJSON struct {
	Created time.Time `json:"createdAt"`
	Name    string    `json:"name"`
	Policy  struct {
		Public bool `json:"publicReadAccess"`
	} `json:"policy"`
}

type statsJSON struct {
	Objects         int64   `json:"numObjects"`
	Unfinished      int64   `json:"numUnfinishedObjects"`
	Health          float64 `json:"minHealth"`
	Bytes           int64   `json:"totalObjectsSize"`
	UnfinishedBytes int64   `json:"totalUnfinishedObjectsSize"`
	Sectors         int64   `json:"totalSectorsSize"`
	Uploaded        int64   `json:"totalUploadedSize"`
}

// objectJSON is an object, of which a list leaves out the last two fields, and
// that of folders more.
type objectJSON struct {
	Bucket   string     `json:"bucket"`
	ETag     string     `json:"eTag,omitempty"`
	Health   float64    `json:"health"`
	Modified time.Time  `json:"modTime"`
	Key      string     `json:"key"`
	Size     int64      `json:"size"`
	MIME     string     `json:"mimeType,omitempty"`
	Secret   string     `json:"encryptionKey,omitempty"`
	Slabs    []partJSON `json:"slabs,omitempty"`
}

type partJSON struct {
	Slab   slabJSON `json:"slab"`
	Offset int64    `json:"offset"`
	Length int64    `json:"length"`
}

type slabJSON struct {
	Health float64     `json:"health"`
	Secret string      `json:"encryptionKey"`
	Min    int         `json:"minShards"`
	Shards []shardJSON `json:"shards,omitempty"` // absent while it is in a buffer
}

type shardJSON struct {
	Contracts map[string][]string `json:"contracts"`
	Root      string              `json:"root"`
}

const secret = "skey:0000000000000000000000000000000000000000000000000000000000000000"

func (s *Sim) objectJSON(f *file, full bool) objectJSON {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(f.path, bucketMark), "/")
	o := objectJSON{Bucket: bucket, ETag: f.md5, Health: 1, Modified: s.epoch.Add(f.changed).UTC().Truncate(time.Second), Key: "/" + key, Size: f.size, MIME: f.mime}
	for _, p := range f.slabs {
		o.Health = min(o.Health, p.of.slabHealth())
		if full {
			o.Slabs = append(o.Slabs, partJSON{s.slabJSON(p.of), p.off, p.length})
		}
	}
	if full {
		o.Secret = secret
	}
	return o
}

func (s *Sim) slabJSON(f *file) slabJSON {
	a := slabJSON{Health: f.slabHealth(), Secret: secret, Min: f.data}
	if f.placed < f.full {
		return a
	}
	var hosts []int
	for i, n := range f.on {
		for range n {
			hosts = append(hosts, i)
		}
	}
	slices.Sort(hosts)
	for i := range f.full {
		shard := shardJSON{Contracts: map[string][]string{}, Root: fmt.Sprintf("%032x%032x", f.serial, i)}
		if i < len(hosts) { // the host of any other has gone
			h := s.hosts[hosts[i]]
			shard.Contracts[h.public()] = []string{s.contractWith(h)}
		}
		a.Shards = append(a.Shards, shard)
	}
	return a
}

func (s *Sim) contractWith(h *host) string {
	id := ""
	for _, c := range s.contract {
		if c.host == h {
			id = c.id // the latest
		}
	}
	return id
}

func (s *Sim) busState() any {
	return map[string]any{
		"startTime": s.epoch.UTC(), "network": "simulated", "version": s.conf.Version, "commit": "?", "os": "linux", "buildTime": time.Unix(0, 0).UTC(),
		"explorer": map[string]any{"enabled": false, "url": ""},
	}
}

func (s *Sim) consensusState() any {
	return map[string]any{"blockHeight": s.height(s.now), "lastBlockTime": s.epoch.Add(s.now / s.conf.BlockTime * s.conf.BlockTime).UTC(), "synced": true}
}

func (s *Sim) busPeers() any {
	all := []string{}
	for i := range s.conf.Peers {
		all = append(all, fmt.Sprintf("203.0.113.%d:9981", 1+i%250))
	}
	return all
}

// busWallet: what unconfirmed transactions spend is not spendable; their change
// is unconfirmed.
func (s *Sim) busWallet() any {
	out, in := s.wallet.unconfirmed()
	return map[string]any{
		"spendable": hastings{new(big.Int).Sub(s.wallet.confirmed, out)}, "confirmed": hastings{new(big.Int).Set(s.wallet.confirmed)},
		"unconfirmed": hastings{in}, "immature": "0", "address": strings.Repeat("0", 76), "scanHeight": s.height(s.now),
	}
}

type busContract struct {
	ID          string   `json:"id"`
	Host        string   `json:"hostKey"`
	ProofHeight int64    `json:"proofHeight"`
	RenewedFrom string   `json:"renewedFrom"`
	Revised     int64    `json:"revisionHeight"`
	Revision    int64    `json:"revisionNumber"`
	Size        int64    `json:"size"`
	Start       int64    `json:"startHeight"`
	State       string   `json:"state"`
	Usability   string   `json:"usability"`
	WindowStart int64    `json:"windowStart"`
	WindowEnd   int64    `json:"windowEnd"`
	Price       hastings `json:"contractPrice"`
	Funds       hastings `json:"initialRenterFunds"`
	Spending    struct {
		Deletions   hastings `json:"deletions"`
		FundAccount hastings `json:"fundAccount"`
		SectorRoots hastings `json:"sectorRoots"`
		Uploads     hastings `json:"uploads"`
	} `json:"spending"`
	RenewedTo string `json:"renewedTo"`
	V2        bool   `json:"v2"`
	Archived  string `json:"archivalReason,omitempty"`
}

// busContracts are the active ones, or all when asked for; null before the first.
// Storage is paid with the upload, downloads from an account with the host.
func (s *Sim) busContracts(everything bool) any {
	var all []busContract
	for _, c := range s.contract {
		if !everything && c.state != active {
			continue
		}
		one := busContract{
			ID: c.id, Host: c.host.public(), RenewedFrom: c.renewedFrom, Revision: c.revisions, Size: c.size, Start: c.start, State: "active", Usability: "good",
			WindowStart: c.end, WindowEnd: c.end + 144, Price: hastings{new(big.Int).Set(c.fees)}, Funds: hastings{new(big.Int).Set(c.initial)}, RenewedTo: c.renewedTo, V2: true,
		}
		if c.host.dropped || within(s.faults.Full, s.now) {
			one.Usability = "bad"
		}
		if c.state != active {
			one.State, one.Usability, one.Archived = "complete", "bad", "removed"
			if c.renewedTo != "" {
				one.Archived = "renewed"
			}
		}
		one.Spending.FundAccount = hastings{new(big.Int).Set(c.download)}
		one.Spending.Uploads = hastings{new(big.Int).Add(c.upload, c.storage)}
		all = append(all, one)
	}
	return all
}

func (s *Sim) buckets() any { return s.renterd.buckets }

func (s *Sim) slabBuffers() any {
	all := []map[string]any{}
	for _, b := range s.renterd.buffers {
		all = append(all, map[string]any{
			"complete": false, "filename": fmt.Sprintf("%d-%d-%064x", b.slab.data, b.slab.full, b.slab.serial), "size": b.size, "maxSize": b.slab.size, "locked": false,
		})
	}
	return all
}

func (s *Sim) busHost(h *host) any {
	type object = map[string]any
	p := s.conf.Prices
	at := s.epoch.UTC()
	remaining := max(s.conf.HostStorage-h.used, 0)
	if within(s.faults.Full, s.now) {
		remaining = 0
	}
	return object{
		"knownSince": at, "lastAnnouncement": at, "publicKey": h.public(),
		"v2Settings": object{
			"protocolVersion": "v5.1.0", "release": "hostd ", "walletAddress": strings.Repeat("0", 76), "acceptingContracts": true,
			"maxCollateral": "100000000000000000000000000000", "maxContractDuration": 25_920, "remainingStorage": remaining / s.conf.Sector, "totalStorage": s.conf.HostStorage / s.conf.Sector,
			"prices": object{
				"contractPrice": hastings{p.Contract}, "collateral": "462962962962", "storagePrice": hastings{p.Storage}, "ingressPrice": hastings{p.Upload}, "egressPrice": hastings{p.Download},
				"freeSectorPrice": "3814697265625000000", "tipHeight": s.height(s.now), "validUntil": at.Add(s.now + 10*time.Minute), "signature": strings.Repeat("0", 128),
			},
			"validity": int64(10 * time.Minute),
		},
		"interactions": object{
			"totalScans": 6, "lastScan": at, "lastScanSuccess": true, "lostSectors": 0, "secondToLastScanSuccess": true, "uptime": int64(s.now), "downtime": 0,
			"successfulInteractions": 6, "failedInteractions": 0,
		},
		"scanned": true, "blocked": false,
		"checks": object{
			"gougingBreakdown":   object{"downloadErr": "", "gougingErr": "", "pruneErr": "", "uploadErr": ""},
			"scoreBreakdown":     object{"age": 1, "collateral": 1, "interactions": 1, "storageRemaining": 1, "uptime": 1, "version": 1, "prices": 1},
			"usabilityBreakdown": object{"blocked": false, "offline": h.dead, "lowMaxDuration": false, "lowScore": false, "redundantIP": false, "gouging": false, "notAcceptingContracts": false, "notAnnounced": false, "notCompletingScan": false},
			"score":              1, "usable": true,
		},
		"storedData": h.used, "v2SiamuxAddresses": []string{"sim" + strconv.Itoa(h.index) + ":9984"},
	}
}
