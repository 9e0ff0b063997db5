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
)

// The control API: ours, and served to the node's own host. Refs are info-hashes.
const (
	healthPath  = "/health"
	publishPath = "/publish" // PUT the content, get the info dictionary
	fetchPath   = "/fetch/"  // POST a task, GET a system.Fetched, DELETE data and task
	filePath    = "/file/"   // GET the file as it is on disk
	streamPath  = "/stream/" // GET the content as it comes
	connectPath = "/connect" // POST the address of a peer
)

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
	handle := func(pattern string, f func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			switch err := f(w, r); {
			case errors.Is(err, system.ErrNotFound):
				http.Error(w, err.Error(), http.StatusNotFound)
			case errors.Is(err, system.ErrBadRef):
				http.Error(w, err.Error(), http.StatusBadRequest)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	handle("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) error { return p.health() })
	handle("PUT "+publishPath, func(w http.ResponseWriter, r *http.Request) error {
		info, err := p.publish(r.Context(), r.URL.Query().Get("name"), r.ContentLength, r.Body)
		if err == nil {
			_, err = w.Write(info)
		}
		return err
	})
	handle("POST "+connectPath, func(_ http.ResponseWriter, r *http.Request) error {
		var address string
		if err := json.NewDecoder(r.Body).Decode(&address); err != nil {
			return err
		}
		return p.connect(address)
	})
	// of is a call about one info-hash.
	of := func(pattern string, f func(http.ResponseWriter, *http.Request, hash) error) {
		handle(pattern+"{ref}", func(w http.ResponseWriter, r *http.Request) error {
			h, err := parse(r.PathValue("ref"))
			if err != nil {
				return fmt.Errorf("%w: %w", err, system.ErrBadRef)
			}
			return f(w, r, h)
		})
	}
	of("POST "+fetchPath, func(_ http.ResponseWriter, r *http.Request, h hash) error {
		var t task
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
			return err
		}
		return p.fetch(h, t)
	})
	of("GET "+fetchPath, func(w http.ResponseWriter, _ *http.Request, h hash) error {
		f, err := p.fetched(h)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(f)
	})
	of("DELETE "+fetchPath, func(_ http.ResponseWriter, _ *http.Request, h hash) error { return p.forget(h) })
	of("GET "+filePath, func(w http.ResponseWriter, r *http.Request, h hash) error {
		f, err := p.open(h)
		if err != nil {
			return err
		}
		defer f.Close()
		http.ServeContent(w, r, "", time.Time{}, f)
		return nil
	})
	of("GET "+streamPath, func(w http.ResponseWriter, r *http.Request, h hash) error {
		return p.stream(r.Context(), h, func(size int64) io.Writer {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			return w
		})
	})
	return mux
}

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
