package web

import (
	"net"
	"net/url"
)

// HostPort is where a URL's server listens, with the scheme's port when the URL
// names none.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
