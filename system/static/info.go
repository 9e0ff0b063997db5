// Package static is a file server of the Go standard library in its own
// process: the baseline that needs nothing installed.
package static

import "github.com/plimsoll-project/plimsoll/system"

const name = "static"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:     name,
		Summary:  "embedded file server (Go net/http): a raw baseline that is always there",
		Modes:    []system.Mode{system.Start},
		Can:      []string{"http", "put", "range", "stat", "delete", "list", "update", "fresh", "stats", "https", "h2"},
		Embedded: true,
		Baseline: true,
		Options: []system.Option{
			{Name: "tls", Type: "bool", Default: "false", Help: "serve HTTPS with a certificate made for the run"},
			{Name: "h2", Type: "bool", Default: "true", Help: "with tls: offer HTTP/2 beside HTTP/1.1"},
			{Name: "port", Type: "int", Default: "0", Help: "TCP port; 0: a free one"},
		},
	}
}
