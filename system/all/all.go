// Package all lists every system.
package all

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/system/boost"
	"github.com/plimsoll-project/plimsoll/system/boxo"
	"github.com/plimsoll-project/plimsoll/system/codex"
	"github.com/plimsoll-project/plimsoll/system/deluge"
	"github.com/plimsoll-project/plimsoll/system/fanout"
	"github.com/plimsoll-project/plimsoll/system/http"
	"github.com/plimsoll-project/plimsoll/system/kubo"
	"github.com/plimsoll-project/plimsoll/system/nginx"
	"github.com/plimsoll-project/plimsoll/system/renterd"
	"github.com/plimsoll-project/plimsoll/system/s3"
	"github.com/plimsoll-project/plimsoll/system/scp"
	"github.com/plimsoll-project/plimsoll/system/sftp"
	"github.com/plimsoll-project/plimsoll/system/siachain"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/static"
	"github.com/plimsoll-project/plimsoll/system/tahoe"
)

// All returns the systems in display order.
func All() []system.System {
	return []system.System{
		nginx.System{},
		static.System{},
		sftp.System{},
		scp.System{},
		s3.System{},
		tahoe.System{},
		siad.System{},
		siachain.System{},
		renterd.System{},
		codex.System{},
		deluge.System{},
		kubo.System{},
		boxo.System{},
		bittorrent.System{},
		fanout.System{},
		boost.System{},
		http.System{},
	}
}

// ByName returns the system called name.
func ByName(name string) (system.System, bool) {
	for _, s := range All() {
		if s.Info().Name == name {
			return s, true
		}
	}
	return nil, false
}
