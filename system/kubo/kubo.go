package kubo

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
)

// System implements system.System.
type System struct{}

var (
	_ system.System     = System{}
	_ system.Healther   = (*node)(nil)
	_ system.Endpointer = (*node)(nil)
	_ system.HTTPServer = (*node)(nil)
	_ system.Ranger     = (*node)(nil)
	_ system.Lister     = (*node)(nil)
	_ system.Stater     = (*node)(nil)
	_ system.Stats      = (*node)(nil)
	_ system.Connector  = (*node)(nil)
	_ system.Redialer   = (*node)(nil)
	_ system.Seeder     = seeding{}
	_ system.Cooler     = private{}
	_ system.Deleter    = private{}
)

// maxChunk is the largest block that the daemon makes.
const maxChunk = 2096896

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	full, err := s.Info().Fill(opt)
	if err == nil {
		_, err = newNode(full)
	}
	if err != nil {
		return system.WrongOptions(name, err)
	}
	return pair.Check(ctx, s, opt, func() error {
		bin, err := program(opt)
		if err != nil {
			return err
		}
		return system.Says(ctx, name, bin, "ipfs version", "version")
	}, "url", "server_url", "gateway")
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	n, err := newNode(opt)
	if err != nil {
		return nil, err
	}
	about := n.about(opt)
	if opt["gateway"] != "" {
		all, err := pair.Endpoints(name, opt, "gateway")
		if err != nil {
			return nil, err
		}
		n.gateway = all[0]
	}
	err = n.Attach(ctx, opt, d.Write, func(ctx context.Context, u *url.URL) (*rpc, error) {
		r, err := newRPC(d.Client.Dial, u, layoutOf(opt))
		if err != nil {
			return nil, err
		}
		i, err := r.id(ctx)
		if err != nil {
			r.web.Close()
			return nil, err
		}
		if about["version"] == "" {
			about["version"], about["endpoint"] = i.AgentVersion, u.Host
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	var one group.Node = n
	if n.Two() {
		if n.farAddr, err = n.Far().Address(ctx); err == nil {
			err = n.Connect(ctx, n.farAddr)
		}
		if err != nil {
			return nil, errors.Join(err, n.Stop(ctx))
		}
		about["seed"] = "add on the node at " + n.Far().base.Host
		one = seeding{n}
		if opt.Bool("gc") {
			one = private{seeding{n}}
		}
	}
	return group.Start(ctx, 1, about, func(context.Context, int) (group.Node, error) { return one, nil })
}

// newNode is a node with the settings of opt, not connected yet.
func newNode(opt system.Options) (*node, error) {
	if c, err := opt.Int("chunk"); err != nil || c < 1 || c > maxChunk {
		return nil, fmt.Errorf("kubo: option \"chunk\" is from 1 to %d bytes, not %q", maxChunk, opt["chunk"])
	}
	base, err := pair.New[*rpc](name, opt)
	if err != nil {
		return nil, err
	}
	n := &node{Node: base, method: opt["method"]}
	n.Keep = func(ctx context.Context, ref system.Ref) error {
		return n.Far().quiet(ctx, "pin/add", url.Values{"arg": {string(ref)}})
	}
	return n, nil
}

func layoutOf(opt system.Options) layout {
	return layout{cidVersion: opt["cid_version"], rawLeaves: opt["raw_leaves"], chunk: opt["chunk"]}
}

// about is what decides how fast the node seems.
func (n *node) about(opt system.Options) map[string]string {
	return map[string]string{
		"method": n.method, "range": "cat with offset and length", "put": "add to the client's node, pinned: nothing crosses the link",
		"cid_version": opt["cid_version"], "raw_leaves": opt["raw_leaves"], "chunk": opt["chunk"],
		"durability": "flatfs does not sync: an add ends in the page cache",
	}
}

func program(opt system.Options) (string, error) {
	return system.Program(name, opt, "binary", "PLIMSOLL_KUBO", "ipfs")
}
