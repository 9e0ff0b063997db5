package codex

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// retryEvery is what lies between a node's requests for a block.
const retryEvery = 2 * time.Second

// startSwarm brings up one node on each host, all alike.
func startSwarm(ctx context.Context, d system.Deployment, bin string, speaks dialect) (system.Cluster, error) {
	identity := map[string]string{
		"binary": bin, "quota": d.Options["quota"], "block_retries": d.Options["block_retries"], "discovery": d.Options["discovery"],
		"publish": "import into the node", "fetch": "POST /data/CID/network", "progress": "blocks in /space",
	}
	bootstrap := ""
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		p, version, err := startPeer(ctx, d, d.Hosts[i], fmt.Sprintf("codex/node-%d", i+1), bin, speaks, bootstrap)
		if err != nil {
			return nil, fmt.Errorf("codex: %w", err)
		}
		identity["version"], identity["dialect"] = version.version(), p.api.dialect.String()
		if d.Options["discovery"] == "dht" && bootstrap == "" {
			bootstrap, err = p.api.record(ctx)
			if err != nil {
				return nil, err
			}
		}
		return p, nil
	})
}

// record is the address by which others find a node in the DHT.
func (a *api) record(ctx context.Context) (string, error) {
	return a.text(ctx, "/spr", nil, web.Call{Method: http.MethodGet, Header: http.Header{"Accept": {"text/plain"}}})
}

func startPeer(ctx context.Context, d system.Deployment, h testbed.Host, label, bin string, speaks dialect, bootstrap string) (*peer, info, error) {
	p := &peer{host: h, label: label, dir: filepath.Join(d.Dir, filepath.Base(label)), connects: d.Options["discovery"] == "connect", contents: map[system.Ref]*content{}}
	retries, err := d.Options.Int("block_retries")
	if err != nil {
		return nil, info{}, err
	}
	p.quiet = time.Duration(retries)*retryEvery + 10*time.Second
	if p.stallAfter, err = d.Options.Duration("stall_after"); err != nil {
		return nil, info{}, err
	}
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, info{}, err
	}
	ports := [3]int{port}
	for i := range ports[1:] {
		if ports[i+1], err = h.FreePort(ctx); err != nil {
			return nil, info{}, err
		}
	}
	args, err := arguments(d.Options, speaks, h.Addr(), p.dir, ports[0], ports[1], ports[2], bootstrap)
	if err != nil {
		return nil, info{}, err
	}
	p.command = append([]string{bin}, args...)
	p.base = &url.URL{Scheme: "http", Host: system.JoinPort(h, port)}
	i, err := p.run(ctx)
	if err != nil {
		return nil, i, err
	}
	if p.address, err = p.api.address(ctx); err != nil {
		return nil, i, fmt.Errorf("%w (%w)", err, p.Stop(context.WithoutCancel(ctx)))
	}
	return p, i, nil
}

// run starts the program and waits until its interface answers.
func (p *peer) run(ctx context.Context) (info, error) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil { // it starts in no other
		return info{}, err
	}
	var a *api
	var i info
	proc, err := p.host.Start(ctx, testbed.Command{
		Name: p.label, Role: "system", Args: p.command, Dir: p.dir,
		Ready: func(ctx context.Context) (err error) {
			a, i, err = connect(ctx, p.host.Dial, p.base)
			return err
		},
	})
	if err != nil {
		return i, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proc, p.api = proc, a
	return i, nil
}
