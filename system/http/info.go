// Package http attaches to any HTTP server by the URLs of its objects.
package http

import (
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
)

const name = "http"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "any HTTP or HTTPS server, by the URLs of its objects",
		Modes:   []system.Mode{system.Attach},
		Can:     []string{"http", "range", "stat", "fresh", "https", "h2"},
		Options: append([]system.Option{
			{Name: "urls", Type: "strings", Help: "URLs of objects"},
			{Name: "list", Type: "string", Help: "file with one object per line: URL [SIZE [SHA256]], - for what is " +
				"not known"},
		}, listed.Options()...),
	}
}
