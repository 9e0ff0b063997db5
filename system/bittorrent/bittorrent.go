package bittorrent

import (
	"context"
	"encoding/json"

	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// System implements system.Embedded.
type System struct{}

var _ system.Healther = (*member.Daemon)(nil)

// settings are the options that are flags of the process and part of its identity.
var settings = []string{"transport", "piece", "max_connections"}

// Check implements system.System: nothing can be missing.
func (s System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	identity := map[string]string{
		"version":   "anacrolix/torrent " + group.Library("github.com/anacrolix/torrent"),
		"discovery": "none: peers are named",
		"metainfo":  "file",
		"pex":       "off",
		"storage":   "file",
	}
	var flags []string
	for _, k := range settings {
		identity[k] = opt[k]
		flags = append(flags, "--"+k+"="+opt[k])
	}
	kind := &member.Kind{
		Name: name, Peer: member.IPPort,
		Ref: func(ref string) error { _, err := parse(ref); return err },
		// the library has no option for it, and maps files by default
		Env: []string{"TORRENT_STORAGE_DEFAULT_FILE_IO=classic"},
		RefOf: func(said json.RawMessage) (string, error) {
			var info []byte
			err := json.Unmarshal(said, &info)
			return metainfo.HashBytes(info).HexString(), err
		},
	}
	return kind.Cluster(ctx, d, identity, flags...)
}
