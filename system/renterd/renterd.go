package renterd

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// System implements system.System.
type System struct{}

var (
	_ system.Healther = (*node)(nil)
	_ system.Walker   = (*node)(nil)
	_ system.Provider = provider{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] == "" {
		return s.startable(opt)
	}
	base, _, err := sia.Endpoint(name, opt)
	if err == nil {
		_, err = redundancy(opt)
	}
	if err != nil {
		return system.WrongOptions("renterd", err)
	}
	return web.Unreachable(ctx, name, []string{web.HostPort(base)})
}

// startable says what is missing to start a network.
func (s System) startable(opt system.Options) []system.Problem {
	p, err := planOf(opt)
	if err != nil {
		return system.WrongOptions(name, err)
	}
	return s.Info().Missing(p.programs(opt))
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	base, password, err := sia.Endpoint(name, opt)
	if err != nil {
		return nil, err
	}
	asked, err := redundancy(opt)
	if err != nil {
		return nil, err
	}
	a, err := connect(base, password, d.Client)
	if err != nil {
		return nil, err
	}
	n := newNode(a, opt["bucket"])
	n.asked, n.Write, n.Prefix, n.Mark = asked, d.Write, strings.TrimPrefix(opt["prefix"], "/"), d.Mark()
	identity := map[string]string{"endpoint": base.Host, "currency": "SC", "sector": strconv.Itoa(sia.Sector),
		"bucket": n.bucket, "prefix": n.Prefix}
	if err := n.attach(ctx, opt["packing"], identity); err != nil {
		a.Close()
		return nil, err
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) {
		if n.Write {
			return n, nil
		}
		return provider{n}, nil
	})
}

// redundancy is what uploads ask for; nil: the node's own.
func redundancy(opt system.Options) (url.Values, error) {
	minimum, total, err := sia.Pair(name, opt, "min_shards", "total_shards")
	if err != nil || minimum == 0 {
		return nil, err
	}
	if total < minimum || total > 255 {
		return nil, fmt.Errorf("renterd: options `min_shards` and `total_shards` are %d and %d: wanted 1 ≤ min ≤ "+
			"total ≤ 255", minimum, total)
	}
	return url.Values{"minshards": {strconv.FormatInt(minimum, 10)}, "totalshards": {strconv.FormatInt(total, 10)}}, nil
}
