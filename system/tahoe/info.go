// Package tahoe stores objects in a Tahoe-LAFS grid: storage nodes and clients
// started here, or the client of a grid that runs already, through its web API.
package tahoe

import "github.com/plimsoll-project/plimsoll/system"

const name = "tahoe"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "Tahoe-LAFS: k-of-n erasure coding on storage nodes started here, or a client's web API",
		Modes:   []system.Mode{system.Start, system.Attach},
		// Every daemon keeps all it knows in its directory, the secret that makes the same caps of the same bytes
		// included; the storage nodes get the ports that they had, which their furls name.
		Kept:    "storage-1",
		Can:     []string{"http", "put", "range", "stat", "update", "directory", "stats", "phases"},
		Install: "plimsoll systems install tahoe, or name the program in option `binary` or PLIMSOLL_TAHOE",
		Options: []system.Option{
			{Name: "url", Type: "string", Help: "attach: URL of a client's web API, such as http://127.0.0.1:3456; " +
				"empty when started"},
			{Name: "caps", Type: "strings", Help: "attach: read caps of existing objects, CAP [SIZE [SHA256]]; they " +
				"are recorded"},
			{Name: "nodes", Type: "int", Default: "3", Min: 1, Max: maxDaemons, Help: "start: storage nodes, all on the server host"},
			{Name: "needed", Type: "int", Default: "2", Min: 1, Max: 256, Help: "start: shares that rebuild an object (k)"},
			{Name: "total", Type: "int", Default: "3", Min: 1, Max: 256, Help: "start: shares that an object is stored as (n)"},
			{Name: "happy", Type: "int", Default: "0", Max: 256, Help: "start: storage nodes that a put must reach; 0: all " +
				"that can get a share"},
			{Name: "protocol", Type: "enum", Enum: []string{"gbs", "foolscap"}, Default: "gbs",
				Help: "start: protocol of storage nodes: HTTPS (Great Black Swamp) or Foolscap"},
			{Name: "mutable", Type: "enum", Enum: []string{"SDMF", "MDMF"}, Default: "SDMF",
				Help: "format of new mutable files and directories"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of tahoe; empty: PLIMSOLL_TAHOE, then plimsoll " +
				"systems install, then PATH"},
		},
	}
}
