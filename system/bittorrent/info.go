// Package bittorrent is a BitTorrent client made of the anacrolix/torrent
// library, each node in a process of its own. Nodes know the peers that are
// named to them and no others: no DHT, trackers, peer exchange, local discovery,
// web seeds or port mapping.
package bittorrent

import "github.com/plimsoll-project/plimsoll/system"

const name = "bittorrent"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:       name,
		Summary:    "embedded BitTorrent swarm on the anacrolix/torrent library",
		Modes:      []system.Mode{system.Start},
		Can:        []string{"connect", "spread", "restart"},
		Embedded:   true,
		NodeMemory: 32 << 20,
		Options: []system.Option{
			{Name: "transport", Type: "enum", Enum: []string{"tcp", "utp", "both"}, Default: "tcp", Help: "transport " +
				"between peers; changes results up to ten times. both: whichever connects first, TCP preferred"},
			{Name: "piece", Type: "size", Default: "262144", Help: "size of a piece, a power of two from 16 KiB to " +
				"16 MiB"},
			{Name: "max_connections", Type: "int", Default: "50", Help: "connections per torrent"},
			{Name: "upload_limit", Type: "size", Default: "0", Help: "bytes per second that a node sends; 0: no limit"},
			{Name: "download_limit", Type: "size", Default: "0", Help: "bytes per second that a node receives; 0: no " +
				"limit"},
			{Name: "port", Type: "int", Default: "0", Help: "port of the peers, TCP and UDP; 0: a free one"},
		},
	}
}
