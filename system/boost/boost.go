// Package boost attaches to booster-http, the HTTP retrieval server of Filecoin storage providers,
// or to any server that serves pieces in the same way.
package boost

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

const name = "boost"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	n, _, err := s.node(opt)
	if err != nil {
		return system.WrongOptions("boost", err)
	}
	return web.Unreachable(ctx, name, n.Endpoints())
}

// Attach implements system.Attacher.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	n, info, err := s.node(opt)
	if err != nil {
		return nil, err
	}
	identity, _, err := n.Connect(ctx, d.Client)
	if err != nil {
		return nil, err
	}
	identity["version"], identity["format"] = version(ctx, n, info), opt["format"]
	return group.One(identity, n, nil)
}

// node validates the options; info is the target of /info.
func (s System) node(opt system.Options) (n *listed.Node, info system.HTTPTarget, err error) {
	if info, err = listed.CommonTarget(name, opt); err != nil {
		return nil, info, err
	}
	base, err := url.Parse(opt["url"])
	if err != nil {
		return nil, info, fmt.Errorf("boost: option \"url\": %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" {
		return nil, info, fmt.Errorf("boost: option \"url\": %q is not the base URL of a server, such as "+
			"http://192.0.2.1:7777", opt["url"])
	}
	n = &listed.Node{Name: name, Targets: map[system.Ref]system.HTTPTarget{}}
	if n.Entries, err = listed.Read(opt["list"], "cid"); err != nil {
		return nil, info, fmt.Errorf("boost: option \"list\": %w", err)
	}
	format := opt["format"]
	if format == "piece" {
		n.Size = pieceSize
	}
	for _, e := range n.Entries {
		if _, err := cid.Decode(e.What); err != nil {
			return nil, info, fmt.Errorf("boost: %s: %q is not a CID: %w", opt["list"], e.What, err)
		}
		t := info
		if format == "piece" {
			t.URL = base.JoinPath("piece", e.What)
		} else {
			t.URL = base.JoinPath("ipfs", e.What)
			t.URL.RawQuery = "format=" + format
		}
		n.Targets[system.Ref(e.What)] = t
	}
	info.URL = base.JoinPath("info")
	return n, info, nil
}

// pieceSize separates payload from padding. A piece is served with zeros up to its unpadded size
// (127/128 of a power of two), while the list gives the size of the data, to which ranges are
// restricted. A list with padded sizes, as in deals, would cause ranges beyond the end.
func pieceSize(listed, served int64) (system.Object, error) {
	switch {
	case listed > served:
		return system.Object{}, fmt.Errorf("the server has %d bytes, the list says %d; give the size of the data, "+
			"not the padded size of the piece", served, listed)
	case listed < 0 || listed == served:
		return system.Object{Size: served}, nil
	}
	return system.Object{Size: served, Payload: listed}, nil
}

// version queries /info, which a proxy may not pass on.
func version(ctx context.Context, n *listed.Node, info system.HTTPTarget) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var answer struct{ Version string }
	if err := n.Client.JSON(ctx, http.MethodGet, info.URL, info.Header, nil, &answer); err != nil ||
		answer.Version == "" {
		return "unknown (no version in /info)"
	}
	return "booster-http " + strings.TrimSpace(answer.Version)
}
