// Package bittorrent is a BitTorrent client based on the anacrolix/torrent library, with each node
// in a separate process. Nodes know only the peers that Plimsoll names: there is no DHT, tracker,
// peer exchange, local discovery, web seed or port mapping.
package bittorrent

import (
	"context"
	_ "embed"

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
