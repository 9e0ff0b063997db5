// Package boost attaches to booster-http, the HTTP retrieval server of Filecoin
// storage providers, or to any server that serves pieces in its way.
package boost

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
)

const name = "boost"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "booster-http, the retrieval server of Filecoin storage providers, by its URL and a list of pieces",
		Modes:   []system.Mode{system.Attach},
		Can:     []string{"http", "range", "stat", "fresh", "https", "h2", "car"},
		Options: append([]system.Option{
			{Name: "url", Type: "string", Required: true,
				Help: "base URL of booster-http, such as http://192.0.2.1:7777"},
			{Name: "list", Type: "string", Required: true, Help: "file with one piece (car, raw: root) per line: CID " +
				"[SIZE [SHA256]]; SIZE without padding"},
			{Name: "format", Type: "enum", Enum: []string{"piece", "car", "raw"}, Default: "piece",
				Help: "piece: /piece/CID, with ranges; car, raw: /ipfs/CID?format=…, whole"},
		}, listed.Options()...),
	}
}
