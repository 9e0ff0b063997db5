// Package boxo is an IPFS node built from the boxo library: a block store on disk, UnixFS import,
// the trustless HTTP gateway and, among nodes that know only each other, bitswap; each node runs in
// its own process. It is not Kubo and never called so: it has neither a DHT nor Kubo's disk store.
package boxo

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/blockservice"
	chunk "github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	"github.com/ipfs/go-cid"
	car "github.com/ipld/go-car/v2/blockstore"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const name = "boxo"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System: nothing can be missing.
func (s System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.Starter: it starts one gateway on each host, without connections to each
// other or elsewhere, or one node of a swarm on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	identity := map[string]string{
		"version": "boxo " + group.Library("github.com/ipfs/boxo"), "chunk": opt["chunk"], "format": opt["format"],
		"raw_leaves": "true", "cid_version": "1",
	}
	if d.Swarm {
		identity["via"], identity["exchange"], identity["store"] = "peers", "bitswap", "one file for each block"
		identity["libp2p"] = "go-libp2p " + group.Library("github.com/libp2p/go-libp2p")
		identity["transport"], identity["discovery"] = "TCP, pre-shared key, noise, yamux", "none: peers are named"
		return newSwarm().Cluster(ctx, d, identity)
	}
	identity["via"], identity["exchange"] = "gateway", "offline"
	identity["store"] = "CARv2 file, blocks read into memory one by one"
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return startGateway(ctx, d, d.Hosts[i])
	})
}

// importPath accepts a PUT of a file and returns its CID: it belongs to Plimsoll, not to the
// gateway.
const importPath = "/plimsoll/import"

// Serve implements system.Embedded: the node of `plimsoll node boxo`, which is a gateway unless it
// has a control API.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var c member.Config
	if err := member.Configure(args, &c); err != nil {
		return err
	}
	imp := importer{chunk: c.Options.Int("chunk")}
	if c.Control != "" {
		key, err := hex.DecodeString(os.Getenv(keyVariable))
		if err != nil || len(key) != 32 {
			return errors.New("boxo: " + keyVariable + " has to be a swarm's key of 32 bytes, in hexadecimal digits")
		}
		m, leave, err := openNode(ctx, key, c.Listen, imp, c.Dir)
		if err != nil {
			return fmt.Errorf("boxo: swarm: %w", err)
		}
		defer leave()
		return member.Serve(ctx, name, stdout, member.Server{What: "control", Address: c.Control,
			Handler: member.Handler(m)})
	}
	// Blocks stay readable while others are added; the CAR's index is in memory.
	store, err := car.OpenReadWrite(filepath.Join(c.Dir, "blocks.car"), nil)
	if err != nil {
		return fmt.Errorf("boxo: open the block store: %w", err)
	}
	defer store.Discard()
	// Blocks that are not in the store are not searched for.
	imp.blocks = blockservice.New(store, offline.Exchange(store))
	mux := http.NewServeMux()
	backend, err := gateway.NewBlocksBackend(imp.blocks)
	if err != nil {
		return fmt.Errorf("boxo: %w", err)
	}
	mux.HandleFunc("PUT "+importPath, member.Answer(func(w http.ResponseWriter, r *http.Request) error {
		id, err := imp.add(r.Context(), r.Body)
		if err == nil {
			fmt.Fprintln(w, id)
		}
		return err
	}))
	mux.Handle("/ipfs/", gateway.NewHandler(gateway.Config{
		DeserializedResponses: true,
		NoDNSLink:             true, // otherwise a Host header would be looked up
		DisableHTMLErrors:     true,
		MetricsRegistry:       prometheus.NewRegistry(),
	}, backend))

	return member.Serve(ctx, name, stdout, member.Server{What: "gateway", Address: c.Listen, Handler: mux})
}

// importer converts a request's body into a balanced UnixFS DAG, block by block.
type importer struct {
	blocks blockservice.BlockService
	chunk  int64
}

func (i *importer) add(ctx context.Context, r io.Reader) (cid.Cid, error) {
	// The importer takes no context; a failing body ends it.
	params := helpers.DagBuilderParams{
		Dagserv:    merkledag.NewDAGService(i.blocks),
		Maxlinks:   helpers.DefaultLinksPerBlock,
		RawLeaves:  true,
		CidBuilder: merkledag.V1CidPrefix(),
	}
	builder, err := params.New(chunk.NewSizeSplitter(r, i.chunk))
	if err != nil {
		return cid.Undef, err
	}
	root, err := balanced.Layout(builder)
	if err != nil {
		return cid.Undef, err
	}
	return root.Cid(), ctx.Err()
}
