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
		Can:        []string{"spread", "restart"},
		Embedded:   true,
		NodeMemory: 32 << 20,
		Options: []system.Option{
			{Name: "transport", Type: "enum", Enum: []string{"tcp", "utp", "both"}, Default: "tcp", Help: "transport " +
				"between peers; changes results up to ten times. both: whichever connects first, TCP preferred"},
			{Name: "piece", Type: "size", Default: "262144", Min: 16 << 10, Max: 16 << 20, Power: true,
				Help: "size of a piece, a power of two from 16 KiB to " +
					"16 MiB"},
			{Name: "max_connections", Type: "int", Default: "50", Min: 1, Help: "connections per torrent"},
			{Name: "port", Type: "int", Default: "0", Help: "port of the peers, TCP and UDP; 0: a free one"},
		},
	}
}
