// Package bittorrent is a BitTorrent client based on the anacrolix/torrent library, with each node
// in a separate process. Nodes know only the peers that Plimsoll names: there is no DHT, tracker,
// peer exchange, local discovery, web seed or port mapping.
package bittorrent

import (
	"context"
	_ "embed"
	"net/netip"
	"path/filepath"
	"time"

	g "github.com/anacrolix/generics"
	"github.com/anacrolix/torrent"
	"github.com/anacrolix/torrent/metainfo"
	"github.com/anacrolix/torrent/storage"
	"golang.org/x/time/rate"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const name = "bittorrent"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System: it requires nothing.
func (s System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{
		"version":   "anacrolix/torrent " + group.Library("github.com/anacrolix/torrent"),
		"discovery": "none: peers are named",
		"metainfo":  "file",
		"pex":       "off",
		"storage":   "file",
	}
	for _, k := range []string{"transport", "piece", "max_connections"} {
		identity[k] = d.Options[k]
	}
	kind := &member.Swarm{
		Name: name,
		Ref:  func(ref system.Ref) error { _, err := parse(ref); return err },
		// the library has no option for this, and maps files by default
		Env: []string{"TORRENT_STORAGE_DEFAULT_FILE_IO=classic"},
	}
	return kind.Cluster(ctx, d, identity)
}

// client returns the library's client. Everything that contacts others by itself is off. Other
// settings are the library's defaults, except where a comment gives the reason.
func (p *peer) client() (*torrent.Client, error) {
	at := netip.MustParseAddrPort(p.Listen)
	conf := torrent.NewDefaultClientConfig()
	conf.NoDHT, conf.PeriodicallyAnnounceTorrentsToDht, conf.DhtStartingNodes = true, false, nil
	conf.DisableTrackers, conf.DisablePEX = true, true
	conf.DisableWebtorrent, conf.DisableWebseeds = true, true
	conf.NoDefaultPortForwarding = true

	conf.ListenHost = func(string) string { return at.Addr().String() }
	conf.ListenPort = int(at.Port())
	conf.DisableIPv4, conf.DisableIPv6 = !at.Addr().Is4(), at.Addr().Is4()
	conf.DisableTCP, conf.DisableUTP = p.Options["transport"] == "utp", p.Options["transport"] == "tcp"

	conf.Seed = true
	conf.EstablishedConnsPerTorrent = int(p.Options.Int("max_connections"))
	conf.DialRateLimiter = rate.NewLimiter(rate.Inf, 0) // default: ten a second, so a swarm of 32 is seconds late
	conf.DropDuplicatePeerIds = true                    // peers that know each other both connect

	conf.HeaderObfuscationPolicy = torrent.HeaderObfuscationPolicy{RequirePreferred: true} // no encryption
	conf.UploadRateLimiter = rate.NewLimiter(rate.Inf, 0)
	conf.KeepAliveTimeout = awake

	directory := func(base string, _ *metainfo.Info, h metainfo.Hash) string {
		return filepath.Join(base, h.HexString())
	}
	conf.DefaultStorage = storage.NewFileOpts(storage.NewFileClientOpts{
		ClientBaseDir:   p.Dir,
		TorrentDirMaker: directory,
		FilePathMaker:   func(storage.FilePathMakerOpts) string { return contentFile },
		PieceCompletion: p.done,
		UsePartFiles:    g.Some(false),
		Logger:          p.log,
	})
	conf.Slogger = p.log
	return torrent.NewClient(conf)
}

// awake is the longest sleep of a connection's writer. The library's writer looks for something to
// send and only then starts to listen for wake-ups: an event between the two (a request, an answer,
// the end of a limiter's pause) waits for the next keep-alive, by default up to a minute.
const awake = 500 * time.Millisecond
