// Package nginx starts nginx as a file server: the raw baseline of the
// retrieval study, with sendfile and nothing in between.
package nginx

import "github.com/plimsoll-project/plimsoll/system"

const name = "nginx"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "nginx serving files with sendfile: the raw baseline",
		Modes:   []system.Mode{system.Start},
		Can:     []string{"http", "put", "range", "stat", "delete", "list", "update", "fresh", "stats", "https", "h2"},
		Image: "nginx:1.30.4@sha256:" +
			"09cc2702709e6388d979d8030e3ab4eb1ceb699b2dced26d7543e872a822e823",
		Install: "install the Debian package nginx-light, or plimsoll systems install nginx, or name the program in " +
			"option `binary` or PLIMSOLL_NGINX",
		Baseline: true,
		Kept:     "data", // nginx gets another port
		Options: []system.Option{
			{Name: "workers", Type: "string", Default: "auto",
				Help: "worker processes: a number, or auto for one per CPU"},
			{Name: "tls", Type: "bool", Default: "false", Help: "serve HTTPS with a certificate made for the run"},
			{Name: "h2", Type: "bool", Default: "true", Help: "with tls: offer HTTP/2 beside HTTP/1.1"},
			{Name: "port", Type: "int", Default: "0", Help: "TCP port; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "path of nginx; empty: PLIMSOLL_NGINX, then PATH and /usr/sbin"},
		},
	}
}
