// Package renterd stores objects on Sia hosts through a renterd that runs
// already. It starts none: a renterd needs a chain, funds and hosts around it.
package renterd

import "github.com/plimsoll-project/plimsoll/system"

const name = "renterd"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Sia, renterd: a running node, with upload packing on or off",
		Modes:   []system.Mode{system.Attach},
		Can:     []string{"http", "put", "durable", "range", "delete", "list", "stat", "stats", "cost", "cold", "monitor"},
		Options: []system.Option{
			{Name: "url", Type: "string", Required: true, Help: "URL of the node, such as http://127.0.0.1:9980, without /api"},
			{Name: "password", Type: "string", Secret: true, Default: "RENTERD_API_PASSWORD", Help: "environment variable with the API password"},
			{Name: "bucket", Type: "string", Default: "default", Help: "bucket; it must be there"},
			{Name: "prefix", Type: "string", Default: "plimsoll/", Help: "prefix of the keys that are read and written; writing adds a mark of the run"},
			{Name: "packing", Type: "enum", Enum: []string{"keep", "on", "off"}, Default: "keep", Help: "the node's upload packing must be so; keep: either"},
			{Name: "min_shards", Type: "int", Default: "0", Help: "shards that rebuild a slab; 0: the node's setting"},
			{Name: "total_shards", Type: "int", Default: "0", Help: "shards of a slab; 0: the node's setting"},
		},
	}
}
