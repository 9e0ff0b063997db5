// Package deluge starts a swarm of Deluge daemons (deluged with libtorrent): one
// on each host, whose peers we alone name to it.
package deluge

import "github.com/plimsoll-project/plimsoll/system"

const name = "deluge"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:       name,
		Summary:    "Deluge: BitTorrent daemons (libtorrent), one on each host, private torrents, no tracker",
		Modes:      []system.Mode{system.Start},
		NodeMemory: 96 << 20,
		Can:        []string{"connect", "spread", "restart"},
		Install:    "plimsoll systems install deluge, or name the program in option `binary` or PLIMSOLL_DELUGE",
		Options: []system.Option{
			{Name: "transport", Type: "enum", Enum: []string{"tcp", "utp", "both"}, Default: "tcp", Help: "between peers; libtorrent's own default is both, with uTP tried first: it changes results several times over"},
			{Name: "piece", Type: "size", Default: "262144", Help: "size of the pieces that are hashed: a power of two from 16 KiB to 16 MiB"},
			{Name: "upload_slots", Type: "int", Default: "0", Help: "peers that a daemon sends to at the same time; 0: as many as ask (Deluge's own default is 4)"},
			{Name: "encryption", Type: "enum", Enum: []string{"off", "prefer"}, Default: "off", Help: "between peers; Deluge's own default is to prefer it (RC4)"},
			{Name: "reconnect", Type: "duration", Default: "5s", Help: "how long libtorrent waits before it tries a peer again that could not be reached; its own default is 60s"},
			{Name: "port", Type: "int", Default: "0", Help: "port of the peers' connections on every host, TCP and UDP; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "path of deluged; empty: PLIMSOLL_DELUGE, then what plimsoll systems install made, then PATH"},
		},
	}
}
