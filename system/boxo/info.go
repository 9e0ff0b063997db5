// Package boxo is an IPFS node made of the boxo library: a block store on disk,
// UnixFS import, the trustless HTTP gateway and, among nodes that know each other
// alone, bitswap; each node in a process of its own. It is not Kubo and
// never called so: it has no DHT and none of Kubo's disk store.
package boxo

import "github.com/plimsoll-project/plimsoll/system"

const name = "boxo"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:       name,
		Summary:    "embedded IPFS node on the boxo library: a gateway, or a swarm over bitswap",
		Modes:      []system.Mode{system.Start},
		Can:        []string{"http", "put", "range", "car", "stat", "fresh", "stats", "spread", "restart"},
		Embedded:   true,
		NodeMemory: 48 << 20,
		Options: []system.Option{
			{Name: "format", Type: "enum", Enum: []string{"file", "raw", "car"}, Default: "file",
				Help: "what is fetched: the file, its root block, or a CAR of the DAG"},
			{Name: "chunk", Type: "size", Default: "262144", Min: 1, Max: 1 << 20, Help: "block size, at most 1 MiB"},
			{Name: "port", Type: "int", Default: "0", Help: "TCP port; 0: a free one"},
		},
	}
}
