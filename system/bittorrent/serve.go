package bittorrent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// streamPath is what this node serves beside [member.Handler]: GET the content as
// it comes. Refs are info-hashes.
const streamPath = "/stream/"

// task is what a node is told to fetch, and what it keeps on disk to go on with.
type task struct {
	Info []byte   // the info dictionary, bencoded; empty: the peers have it
	From []string // addresses of peers
}

// Serve implements system.Embedded: the node of `plimsoll node bittorrent`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node bittorrent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	var c config
	flags.StringVar(&c.listen, "listen", "", "`address` for peers")
	flags.StringVar(&c.dir, "dir", "", "`directory` of contents and tasks")
	flags.StringVar(&c.transport, "transport", "tcp", "tcp, utp or both")
	flags.Int64Var(&c.piece, "piece", 256<<10, "`bytes` of a piece")
	flags.IntVar(&c.connections, "max_connections", 50, "connections of a torrent")
	flags.BoolVar(&c.encryption, "encryption", false, "encrypted peers only")
	flags.Int64Var(&c.upload, "upload_limit", 0, "`bytes` a second; 0: no limit")
	flags.Int64Var(&c.download, "download_limit", 0, "`bytes` a second; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || c.listen == "" || c.dir == "" || flags.NArg() > 0 {
		return errors.New("bittorrent: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides flags")
	}
	c.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p, err := openPeer(ctx, c)
	if err != nil {
		return fmt.Errorf("bittorrent: %w", err)
	}
	defer p.close()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *control)
	if err != nil {
		return fmt.Errorf("bittorrent: %w", err)
	}
	srv := &http.Server{Handler: p.api(), ReadHeaderTimeout: time.Minute}
	fmt.Fprintf(stdout, "bittorrent: peers at %s, control at http://%s/\n", c.listen, l.Addr())
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return fmt.Errorf("bittorrent: %w", err)
	}
	return nil
}

func (p *peer) api() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", member.Handler(controlled{p}))
	mux.HandleFunc("GET "+streamPath+"{ref}", member.Answer(func(w http.ResponseWriter, r *http.Request) error {
		return of(r.PathValue("ref"), func(h hash) error {
			return p.stream(r.Context(), h, func(size int64) io.Writer {
				w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
				return w
			})
		})
	}))
	return mux
}

// controlled is a peer as the control API sees it.
type controlled struct{ p *peer }

var (
	_ member.Node   = controlled{}
	_ member.Mortal = controlled{}
)

// of does something with the info-hash that a ref is.
func of(ref string, do func(hash) error) error {
	h, err := parse(ref)
	if err != nil {
		return fmt.Errorf("%w: %w", err, system.ErrBadRef)
	}
	return do(h)
}

// Health implements member.Mortal.
func (c controlled) Health() error { return c.p.health() }

// Publish implements member.Node: the info dictionary, bencoded.
func (c controlled) Publish(ctx context.Context, title string, size int64, r io.Reader) (any, error) {
	return c.p.publish(ctx, title, size, r)
}

// Fetch implements member.Node.
func (c controlled) Fetch(ref string, raw json.RawMessage) error {
	return of(ref, func(h hash) error {
		var t task
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		return c.p.fetch(h, t)
	})
}

// Progress implements member.Node.
func (c controlled) Progress(ref string) (f system.Progress, err error) {
	err = of(ref, func(h hash) error {
		f, err = c.p.fetched(h)
		return err
	})
	return f, err
}

// ReadBack implements member.Node: the file, whatever the library says of it.
func (c controlled) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
	return of(ref, func(h hash) error {
		f, err := c.p.open(h)
		if err != nil {
			return err
		}
		defer f.Close()
		http.ServeContent(w, r, "", time.Time{}, f)
		return nil
	})
}

// Forget implements member.Node.
func (c controlled) Forget(ref string) error { return of(ref, c.p.forget) }

// Connect implements member.Node.
func (c controlled) Connect(address string) error { return c.p.connect(address) }

// writeWhole writes a file that is there whole or not at all.
func writeWhole(path string, b []byte) error {
	f, err := os.CreateTemp(dirOf(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
