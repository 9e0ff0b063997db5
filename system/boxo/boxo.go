package boxo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// System implements system.Embedded.
type System struct{}

var (
	_ system.Embedded   = System{}
	_ system.HTTPServer = (*node)(nil)
	_ system.Healther   = (*node)(nil)
	_ system.Seeder     = (*node)(nil)
	_ system.Ranger     = (*node)(nil)
)

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Attach implements system.System.
func (System) Attach(context.Context, system.Deployment) (system.Cluster, error) {
	return nil, errors.New("boxo: can only be started; to measure a gateway of yours use system http")
}

// Start implements system.System: one node on each host, without links to each
// other or to anyone.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	if n, err := opt.Int("chunk"); err != nil || n < 1 || n > maxChunk {
		return nil, fmt.Errorf("boxo: option \"chunk\" is from 1 B to 1 MiB, not %q", opt["chunk"])
	}
	identity := map[string]string{"version": version(), "store": "CARv2 file, blocks read into memory one by one", "exchange": "offline"}
	for _, k := range []string{"format", "chunk", "raw_leaves", "cid_version", "retrieval_timeout", "max_requests"} {
		identity[k] = opt[k]
	}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		n, err := start(ctx, d, d.Hosts[i])
		if err != nil {
			return nil, fmt.Errorf("boxo: %w", err)
		}
		return n, nil
	})
}

// node is one gateway.
type node struct {
	address string
	format  string
	client  *web.Client // over the client's link
	local   *web.Client // from the host to itself
	proc    *testbed.Process

	mu    sync.Mutex
	probe system.Ref
}

func start(ctx context.Context, d system.Deployment, h testbed.Host) (*node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	n := &node{address: system.JoinPort(h, port), format: d.Options["format"]}
	if n.client, err = web.New(name, d.Client.Dial, n.at("/")); err != nil {
		return nil, err
	}
	if n.local, err = web.New(name, h.Dial, n.at("/")); err != nil {
		return nil, err
	}
	dir := filepath.Join(d.Dir, name+"-"+h.Name())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	args := []string{"--listen", n.address, "--store", filepath.Join(dir, "blocks.car")}
	for _, k := range []string{"chunk", "raw_leaves", "cid_version", "retrieval_timeout", "max_requests"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	cmd, err := d.Node(name, args...)
	if err != nil {
		return nil, err
	}
	n.proc, err = h.Start(ctx, testbed.Command{Name: name + "-" + h.Name(), Role: "system", Args: cmd, Dir: dir, Ready: n.Health})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *node) at(path string) system.HTTPTarget {
	return system.HTTPTarget{URL: &url.URL{Scheme: "http", Host: n.address, Path: path}}
}

// file is the target of the object's own bytes, whatever the option format says.
func (n *node) file(ref system.Ref) (system.HTTPTarget, error) {
	if _, err := cid.Decode(string(ref)); err != nil {
		return system.HTTPTarget{}, fmt.Errorf("boxo: %q is not a CID (%w): %w", ref, err, system.ErrNotFound)
	}
	return n.at("/ipfs/" + string(ref)), nil
}

// Target implements system.HTTPServer.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	t, err := n.file(ref)
	if err != nil || n.format == "file" {
		return t, err
	}
	t.Encoded = n.format
	t.URL.RawQuery = "format=" + n.format
	if n.format == "car" {
		// Without these the order and repetitions are the gateway's choice.
		t.URL.RawQuery += "&car-version=1&car-order=dfs&car-dups=n&dag-scope=all"
	}
	return t, nil
}

// Put implements system.Node.
func (n *node) Put(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.add(ctx, n.client, size, r)
}

// Seed implements system.Seeder: the same import, asked for by the host itself.
func (n *node) Seed(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.add(ctx, n.local, size, r)
}

func (n *node) add(ctx context.Context, c *web.Client, size int64, r io.Reader) (system.Ref, error) {
	answer, err := c.Send(ctx, http.MethodPut, n.at(importPath), size, r)
	if err != nil {
		return "", err
	}
	id, err := cid.Decode(strings.TrimSpace(string(answer)))
	if err != nil {
		return "", fmt.Errorf("boxo: import answered %q instead of a CID: %w", answer, err)
	}
	return system.Ref(id.String()), nil
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.file(ref)
	if err != nil {
		return err
	}
	return n.client.Get(ctx, t, w)
}

// GetRange implements system.Ranger.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	t, err := n.file(ref)
	if err != nil {
		return err
	}
	return n.client.GetRange(ctx, t, off, count, w)
}

// Health implements system.Healther: a block from the store, through the whole
// gateway, over a new connection. The first call puts that block there.
func (n *node) Health(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		select {
		case <-n.proc.Done():
			return fmt.Errorf("boxo: the node's process has ended (%v); see %s", n.proc.Err(), n.proc.LogPath())
		default:
		}
	}
	if n.probe == "" {
		ref, err := n.add(ctx, n.client, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
		if err != nil {
			return err
		}
		n.probe = ref
	}
	t, err := n.file(n.probe)
	if err != nil {
		return err
	}
	return n.client.Probe(ctx, t, disk.ProbeContent)
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process { return []*testbed.Process{n.proc} }

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	return errors.Join(n.close(), n.proc.Stop(ctx))
}

func (n *node) close() error {
	n.client.Close()
	n.local.Close()
	return nil
}

// version is that of the library in this binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/ipfs/boxo" {
				return "boxo " + m.Version
			}
		}
	}
	return "boxo (version unknown)"
}
