package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// dialTime is how long a server may take to accept a connection before a check reports it as
// unreachable.
const dialTime = 5 * time.Second

// Unreachable opens and closes a connection to each address (host:port), and reports those where no
// server answers.
func Unreachable(ctx context.Context, name string, addresses []string) []system.Problem {
	var all []system.Problem
	d := net.Dialer{Timeout: dialTime}
	for _, address := range addresses {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
			continue
		}
		why := err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) {
			why = "connection refused"
		}
		all = append(all, system.Problem{
			What: fmt.Sprintf("%s: no server answers at %s: %s", name, address, why),
			Hint: "is the server running, and is its address right?",
		})
	}
	return all
}

// HostPort returns the address of a URL's server, with the scheme's default port if the URL has
// none.
func HostPort(u *url.URL) string {
	port := u.Port()
	port = cmp.Or(port, map[string]string{"http": "80", "https": "443", "sftp": "22"}[u.Scheme])
	return net.JoinHostPort(u.Hostname(), port)
}

// ParseServer parses the URL of a server, without path and query: the value of option key of system name.
// like is an example for the error.
func ParseServer(name, key, text, like string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" ||
		u.RawQuery != "" {
		return nil, fmt.Errorf("%s: option %q: %q is not the URL of a server, such as %s", name, key, text, like)
	}
	u.Path = ""
	return u, nil
}
