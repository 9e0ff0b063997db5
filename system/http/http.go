// Package http attaches to any HTTP server by the URLs of its objects.
package http

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

const name = "http"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Provider = (*listed.Node)(nil)
	_ system.Healther = (*listed.Node)(nil)
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	n, err := s.node(opt)
	if err != nil {
		return system.WrongOptions("http", err)
	}
	return web.Unreachable(ctx, name, n.Endpoints())
}

// Attach implements system.Attacher.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	n, err := s.node(d.Options)
	if err != nil {
		return nil, err
	}
	identity, head, err := n.Connect(ctx, d.Client)
	if err != nil {
		return nil, err
	}
	identity["version"] = cmp.Or(head.Get("Server"), "unknown (the server sends no Server header)")
	return group.One(identity, n, nil)
}

// node validates the options.
func (s System) node(opt system.Options) (*listed.Node, error) {
	base, err := listed.CommonTarget(name, opt)
	if err != nil {
		return nil, err
	}
	n := &listed.Node{Name: name, Targets: map[system.Ref]system.HTTPTarget{}}
	if opt["urls"] != "" {
		if n.Entries, err = listed.Parse(strings.NewReader(opt["urls"]), "option \"urls\"", "url"); err != nil {
			return nil, fmt.Errorf("http: %w", err)
		}
	}
	if opt["list"] != "" {
		more, err := listed.Read(opt["list"], "url")
		if err != nil {
			return nil, fmt.Errorf("http: option \"list\": %w", err)
		}
		n.Entries = append(n.Entries, more...)
	}
	if len(n.Entries) == 0 {
		return nil, errors.New("http: give URLs of objects in option \"urls\" or a file with them in option \"list\"")
	}
	for i, e := range n.Entries {
		u, err := url.Parse(e.What)
		if err != nil { // it quotes the URL, which may contain a password
			return nil, fmt.Errorf("http: the URL of object %d cannot be read", i+1)
		}
		if u.User != nil {
			return nil, fmt.Errorf("http: the URL of an object on %s has credentials, and they would be recorded: "+
				"name an environment variable in option \"headers\"", u.Host)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("http: %q is not an absolute http or https URL", e.What)
		}
		u.Fragment = "" // it is never sent
		t := base
		t.URL = u
		n.Targets[system.Ref(e.What)] = t
	}
	return n, nil
}
