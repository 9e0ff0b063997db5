// Package deluge starts a swarm of Deluge daemons (deluged with libtorrent): one
// on each host, whose peers we alone name to it.
package deluge

import (
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

const name = "deluge"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:       name,
		Summary:    "Deluge: BitTorrent daemons (libtorrent), one on each host, private torrents, no tracker",
		Modes:      []system.Mode{system.Start},
		NodeMemory: 96 << 20,
		Can:        []string{"spread", "restart"},
		Install:    "plimsoll systems install deluge, or name the program in option `binary` or PLIMSOLL_DELUGE",
		Options: []system.Option{
			{Name: "transport", Type: "enum", Enum: []string{"tcp", "utp", "both"}, Default: "tcp",
				Help: "between peers; libtorrent's default is both, uTP first; changes results several times over"},
			{Name: "piece", Type: "size", Default: "262144", Min: 16 << 10, Max: 16 << 20, Power: true,
				Help: "piece size, a power of two from 16 KiB to 16 MiB"},
			{Name: "upload_slots", Type: "int", Default: "0", Max: 1 << 16, Help: "peers that a daemon sends to at once; 0: all " +
				"(Deluge's default: 4)"},
			{Name: "encryption", Type: "enum", Enum: []string{"off", "prefer"}, Default: "off",
				Help: "RC4 between peers; Deluge's default is prefer"},
			{Name: "reconnect", Type: "duration", Default: "5s", Min: int64(time.Second), Max: int64(time.Hour),
				Help: "wait before an unreachable peer is tried again (libtorrent's default: 60s)"},
			{Name: "port", Type: "int", Default: "0", Help: "port of the peers, TCP and UDP; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "path of deluged; empty: PLIMSOLL_DELUGE, then plimsoll systems " +
				"install, then PATH"},
		},
	}
}
