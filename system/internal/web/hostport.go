package web

import (
	"fmt"
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

// Base reads the URL of a server, which has neither path nor query: the option
// key of the system called name. like is an example of one.
func Base(name, key, text, like string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return nil, fmt.Errorf("%s: option %q: %q is not the URL of a server, such as %s", name, key, text, like)
	}
	u.Path = ""
	return u, nil
}
