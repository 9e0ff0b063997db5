package boxo

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

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

// importPath accepts a PUT of a file and returns its CID: it belongs to Plimsoll, not to the
// gateway.
const importPath = "/plimsoll/import"

// Serve implements system.Embedded: the node of `plimsoll node boxo`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node boxo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "", "`address` to listen on")
	path := flags.String("store", "", "CAR `file` that holds the blocks; made anew")
	var imp importer
	flags.Int64Var(&imp.chunk, "chunk", 256<<10, "`bytes` of a block")
	control := flags.String("control", "", "`address` of the control API of a node of a swarm, in place of a gateway; "+
		"the swarm's key, hexadecimal, is in "+keyVariable)
	dir := flags.String("dir", "", "`directory` of such a node's blocks and tasks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control != "" && *dir != "" && *listen != "" && flags.NArg() == 0 {
		key, err := hex.DecodeString(os.Getenv(keyVariable))
		if err != nil || len(key) != 32 {
			return errors.New("boxo: " + keyVariable + " has to be a swarm's key of 32 bytes, in hexadecimal digits")
		}
		m, leave, err := openNode(ctx, key, *listen, imp, *dir)
		if err != nil {
			return fmt.Errorf("boxo: swarm: %w", err)
		}
		defer leave()
		return member.Serve(ctx, name, stdout, member.Server{What: "control", Address: *control,
			Handler: member.Handler[struct{}](m)})
	}
	if *listen == "" || *path == "" || flags.NArg() > 0 {
		return errors.New("boxo: give --listen ADDRESS and --store FILE, or --control ADDRESS and --dir DIRECTORY, and " +
			"nothing besides flags")
	}
	// Blocks stay readable while others are added; the CAR's index is in memory.
	store, err := car.OpenReadWrite(*path, nil)
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
	mux.Handle("PUT "+importPath, &imp)
	mux.Handle("/ipfs/", gateway.NewHandler(gateway.Config{
		DeserializedResponses: true,
		NoDNSLink:             true, // otherwise a Host header would be looked up
		DisableHTMLErrors:     true,
		MetricsRegistry:       prometheus.NewRegistry(),
	}, backend))

	return member.Serve(ctx, name, stdout, member.Server{What: "gateway", Address: *listen, Handler: mux})
}

// importer converts a request's body into a balanced UnixFS DAG, block by block.
type importer struct {
	blocks blockservice.BlockService
	chunk  int64
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
