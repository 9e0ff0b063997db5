// Package http attaches to any HTTP server by the URLs of its objects.
package http

import "github.com/plimsoll-project/plimsoll/system"

const name = "http"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "any HTTP or HTTPS server, by the URLs of its objects",
		Modes:   []system.Mode{system.Attach},
		Can:     []string{"range", "https", "h2"},
		Options: []system.Option{
			{Name: "urls", Type: "strings", Help: "URLs of objects"},
			{Name: "list", Type: "string", Help: "file with one object per line: URL [SIZE [SHA256]], - for what is not known"},
			{Name: "header_env", Type: "strings", Help: "headers with a secret: `Authorization=NAME` sends the value of the environment variable NAME"},
			{Name: "ca", Type: "string", Help: "PEM file of a root certificate to trust instead of the system's"},
			{Name: "insecure", Type: "bool", Default: "false", Help: "do not check the server's certificate"},
		},
	}
}
