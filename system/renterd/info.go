// Package renterd stores objects on Sia hosts through renterd: one that runs already, or a
// private network of renterd, hostd hosts and a chain of our own.
package renterd

import "github.com/plimsoll-project/plimsoll/system"

const name = "renterd"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Sia, renterd: a running node, or a private network with hostd hosts started here",
		Modes:   []system.Mode{system.Start, system.Attach},
		Can: []string{"http", "put", "durable", "range", "delete", "list", "stat", "stats", "cost", "cold",
			"monitor"},
		Image:   "ghcr.io/siafoundation/renterd:latest",
		Images:  map[string]string{hostd: "ghcr.io/siafoundation/hostd:latest"},
		Outside: "hostd would ask servers on the internet for a certificate and for its latest version",
		Install: "plimsoll systems install renterd, or get renterd and hostd, v2.9 or later, from their projects and " +
			"name them in options `binary` and `hostd`, or PLIMSOLL_RENTERD and PLIMSOLL_HOSTD",
		Options: []system.Option{
			{Name: "url", Type: "string", Help: "attach: URL of the node, such as http://127.0.0.1:9980, without " +
				"/api; empty when started"},
			{Name: "password", Type: "string", Secret: true, Default: "RENTERD_API_PASSWORD",
				Help: "attach: environment variable with the API password"},
			{Name: "bucket", Type: "string", Default: "default", Help: "bucket; when attached it must be there"},
			{Name: "prefix", Type: "string", Default: "plimsoll/",
				Help: "prefix of the keys that are read and written; writing adds a mark of the run"},
			{Name: "packing", Type: "enum", Enum: []string{"keep", "on", "off"}, Default: "keep",
				Help: "upload packing; keep: as it is (off when started). An attached node must have it so"},
			{Name: "min_shards", Type: "int", Default: "0", Help: "shards that rebuild a slab; 0: 1 (attached: the " +
				"node's)"},
			{Name: "total_shards", Type: "int", Default: "0",
				Help: "shards of a slab; 0: `hosts` (attached: the node's)"},
			{Name: "hosts", Type: "int", Default: "3", Help: "start: hosts of the private network"},
			{Name: "host_size", Type: "size", Default: "1073741824",
				Help: "start: storage of each host, a multiple of 4 MiB"},
			system.ImageOption(),
			{Name: "hostd_image", Type: "string", Help: "start: container image with hostd; then `hostd` is a path " +
				"in it"},
			{Name: "binary", Type: "string", Help: "start: path of renterd; empty: PLIMSOLL_RENTERD, or `renterd` in " +
				"PATH"},
			{Name: hostd, Type: "string", Help: "start: path of hostd; empty: PLIMSOLL_HOSTD, or `hostd` in PATH"},
		},
	}
}
