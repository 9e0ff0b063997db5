package bittorrent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anacrolix/torrent/metainfo"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// System implements system.Embedded.
type System struct{}

var _ system.Healther = (*member.Daemon)(nil)

// settings are the options that are flags of the process and part of its identity.
var settings = []string{"transport", "piece", "max_connections", "upload_limit", "download_limit"}

// Check implements system.System: nothing can be missing.
func (s System) Check(_ context.Context, opt system.Options) []system.Problem {
	return system.WrongOptions(name, wrong(opt))
}

// wrong is what is wrong with the options.
func wrong(opt system.Options) error {
	if n, err := opt.Int("piece"); err != nil || n < minPiece || n > maxPiece || n&(n-1) != 0 {
		return fmt.Errorf("bittorrent: option \"piece\" is a power of two from 16 KiB to 16 MiB, not %q", opt["piece"])
	}
	for _, k := range []string{"upload_limit", "download_limit"} {
		if n, err := opt.Int(k); err != nil || n < 0 || n > 0 && n < minPiece {
			return fmt.Errorf("bittorrent: option %q is 0 or at least 16 KiB, the size of a request, not %q", k, opt[k])
		}
	}
	if n, err := opt.Int("max_connections"); err != nil || n < 1 {
		return fmt.Errorf("bittorrent: option \"max_connections\" is at least 1, not %q", opt["max_connections"])
	}
	return nil
}

const (
	minPiece = 16 << 10 // one request
	maxPiece = 16 << 20
)

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	if err := wrong(opt); err != nil {
		return nil, err
	}
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
