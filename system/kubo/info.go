// Package kubo stores objects in Kubo, the common IPFS node. A put is an import
// into the client's own node; what crosses the link is the reading of what
// another node holds.
package kubo

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
)

const name = "kubo"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Kubo (IPFS): a node of the client's and one on the server, or a swarm of any size",
		Modes:   []system.Mode{system.Start, system.Attach},
		Can: []string{"put", "http", "range", "delete", "list", "stat", "cold", "stats", "fresh",
			"spread", "restart"},
		NodeMemory: 64 << 20,
		Image: "ipfs/kubo:v0.42.0@sha256:" +
			"8907cb0cc1ad5798f6bb1bb1341a800990c268e021cedfa317e8aa1a33864214",
		Install: "plimsoll systems install kubo, or https://docs.ipfs.tech/install/command-line/, then have `ipfs` " +
			"in PATH, or name it in option `binary` or PLIMSOLL_KUBO",
		Options: append(daemon.Options("http://127.0.0.1:5001"), []system.Option{
			{Name: "chunk", Type: "size", Default: "262144", Min: 1, Max: 2096896, Help: "block size, at most 2096896"},
			{Name: "port", Type: "int", Default: "0", Help: "start: TCP port of the server node's RPC; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of ipfs; empty: PLIMSOLL_KUBO, then PATH"},
		}...),
	}
}
