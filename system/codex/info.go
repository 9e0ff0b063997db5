// Package codex stores objects in Codex, which goes on as Logos Storage: two
// dialects of one REST interface. A put is an import into the client's own node;
// what crosses the link is the reading of what another node holds.
package codex

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
)

const name = "codex"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Codex / Logos Storage: a node of the client's and one on the server",
		Modes:   []system.Mode{system.Start, system.Attach},
		Can:     []string{"put", "delete", "list", "stat", "cold", "stats", "spread", "restart"},
		// The digest that a public project's tests run; no registry was at hand to pull it.
		Image: "codexstorage/nim-codex@sha256:" +
			"25d9409b591da37200896e68fd9e4c591566f1ad0a80c0633c6cd5011ae56edb",
		Install: "plimsoll systems install codex, or build Codex or Logos Storage and name the program in option " +
			"`binary` or PLIMSOLL_CODEX",
		// Measured once, after 100 MiB: 100 MB.
		NodeMemory: 128 << 20,
		Options: append(daemon.Options("http://127.0.0.1:8080"), []system.Option{
			{Name: "quota", Type: "size", Default: "8589934592", Min: 1 << 20, Help: "start: storage of a node, in whole MiB"},
			{Name: "block_retries", Type: "int", Default: "3000", Min: 1,
				Help: "start: how often a node asks for a block, every two seconds; with few it gives blocks up " +
					"that wait behind others on a slow link"},
			{Name: "port", Type: "int", Default: "0", Help: "start: TCP port of the server node's API; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of the program; empty: PLIMSOLL_CODEX, then `codex` " +
				"or `storage` in PATH"},
		}...),
	}
}
