package boxo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"

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

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const (
	importPath = "/plimsoll/import" // PUT a file, get its CID: ours, not the gateway's
	maxChunk   = 1 << 20            // the size of a block that other implementations take
)

// Serve implements system.Embedded: the node of `plimsoll node boxo`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node boxo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "", "`address` to listen on")
	path := flags.String("store", "", "CAR `file` that holds the blocks; made anew")
	var imp importer
	flags.Int64Var(&imp.chunk, "chunk", 256<<10, "`bytes` of a block")
	flags.BoolVar(&imp.rawLeaves, "raw_leaves", true, "leaves are plain bytes")
	flags.IntVar(&imp.cidVersion, "cid_version", 1, "0 or 1")
	var swarm swarmFlags
	flags.StringVar(&swarm.key, "swarm_key", "", "`file` of the key of a private swarm")
	flags.StringVar(&swarm.identity, "identity", "", "`file` of the node's private key in the swarm")
	flags.StringVar(&swarm.listen, "swarm_listen", "", "`address` to listen on in the swarm")
	control := flags.String("control", "", "`address` of the control API of a node of a swarm, in place of a gateway")
	dir := flags.String("dir", "", "`directory` of such a node's blocks and tasks")
	limit := flags.Int64("upload_limit", 0, "`bytes` of blocks a second that such a node sends; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control != "" && *dir != "" && swarm.key != "" && swarm.identity != "" && swarm.listen != "" &&
		flags.NArg() == 0 {
		m, leave, err := openNode(ctx, swarm, imp, *dir, *limit)
		if err != nil {
			return fmt.Errorf("boxo: swarm: %w", err)
		}
		defer leave()
		return member.Serve(ctx, name, stdout, member.Server{What: "control", Address: *control,
			Handler: member.Handler(m)})
	}
	if *listen == "" || *path == "" || flags.NArg() > 0 {
		return errors.New("boxo: give --listen ADDRESS and --store FILE, or --control ADDRESS, --dir DIRECTORY, " +
			"--swarm_key FILE, --identity FILE and --swarm_listen ADDRESS, and nothing besides flags")
	}
	// Blocks stay readable while others are added; the CAR's index is in memory.
	store, err := car.OpenReadWrite(*path, nil)
	if err != nil {
		return fmt.Errorf("boxo: open the block store: %w", err)
	}
	defer store.Discard()
	// A block that is not in the store is not searched for.
	imp.blocks = blockservice.New(store, offline.Exchange(store))
	mux := http.NewServeMux()
	backend, err := gateway.NewBlocksBackend(imp.blocks)
	if err != nil {
		return fmt.Errorf("boxo: %w", err)
	}
	mux.Handle("PUT "+importPath, &imp)
	mux.Handle("/ipfs/", gateway.NewHandler(gateway.Config{
		DeserializedResponses: true,
		NoDNSLink:             true, // or a Host header would be looked up
		DisableHTMLErrors:     true,
		MetricsRegistry:       prometheus.NewRegistry(),
	}, backend))

	return member.Serve(ctx, name, stdout, member.Server{What: "gateway", Address: *listen, Handler: mux})
}

// importer turns a request's body into a balanced UnixFS DAG, block by block.
type importer struct {
	blocks     blockservice.BlockService
	chunk      int64
	rawLeaves  bool
	cidVersion int
}

func (i *importer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, err := i.add(r.Context(), r.Body)
	if err != nil {
		http.Error(w, "import: "+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, id)
}

func (i *importer) add(ctx context.Context, r io.Reader) (cid.Cid, error) {
	prefix, err := merkledag.PrefixForCidVersion(i.cidVersion)
	if err != nil {
		return cid.Undef, err
	}
	// The importer takes no context; a body that fails ends it.
	params := helpers.DagBuilderParams{
		Dagserv:    merkledag.NewDAGService(i.blocks),
		Maxlinks:   helpers.DefaultLinksPerBlock,
		RawLeaves:  i.rawLeaves,
		CidBuilder: prefix,
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
