package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// The control API: ours, and served to the node's own host.
const (
	healthPath  = "/health"
	publishPath = "/publish" // PUT the content, get the manifest
	fetchPath   = "/fetch/"  // POST a task, GET a system.Fetched, DELETE data and task
	filePath    = "/file/"   // GET the file as it is on disk
	connectPath = "/connect" // POST the address of a seeder
)

// contentPath is where other nodes get what this one published.
const contentPath = "/content/"

// Serve implements system.Embedded: the node of `plimsoll node fanout`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node fanout", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	listen := flags.String("listen", "", "`address` of the content's server")
	dir := flags.String("dir", "", "`directory` of contents and tasks")
	from := flags.String("from", "one", "download from one seeder at a time, or from all")
	limit := flags.Int64("upload_limit", 0, "`bytes` a second; 0: no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || *listen == "" || *dir == "" || flags.NArg() > 0 {
		return errors.New("fanout: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides flags")
	}
	var listeners [2]net.Listener
	for i, address := range []string{*control, *listen} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("fanout: %w", err)
		}
		defer l.Close()
		listeners[i] = l
	}
	p := &peer{dir: *dir, self: *listen, all: *from == "all", limit: limiter(*limit), contents: map[string]*content{}}
	defer p.close()
	if err := p.resume(); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	fmt.Fprintf(stdout, "fanout: contents at http://%s%s, control at http://%s/\n", *listen, contentPath, *control)
	ended := make(chan error, len(listeners))
	for i, h := range []http.Handler{p.api(), p.contentServer()} {
		srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		defer srv.Close()
		go func() { ended <- srv.Serve(listeners[i]) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("fanout: %w", err)
	}
}

// answers turns errors into what they are in HTTP.
func answers(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch err := f(w, r); {
		case errors.Is(err, system.ErrNotFound):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func (p *peer) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("PUT "+publishPath, answers(func(w http.ResponseWriter, r *http.Request) error {
		m, err := p.publish(r.Context(), r.ContentLength, r.Body)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(m)
	}))
	mux.HandleFunc("POST "+connectPath, answers(func(_ http.ResponseWriter, r *http.Request) error {
		var address string
		if err := json.NewDecoder(r.Body).Decode(&address); err != nil {
			return err
		}
		p.connect(address)
		return nil
	}))
	mux.HandleFunc("POST "+fetchPath+"{ref}", answers(func(_ http.ResponseWriter, r *http.Request) error {
		var t task
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
			return err
		}
		if ref := r.PathValue("ref"); t.Manifest.ref() != ref {
			return fmt.Errorf("the manifest is that of %s, not of %s", t.Manifest.ref(), ref)
		}
		return p.fetch(t)
	}))
	// of is a call about a content that is here.
	of := func(pattern string, f func(http.ResponseWriter, *http.Request, *content) error) {
		mux.HandleFunc(pattern+"{ref}", answers(func(w http.ResponseWriter, r *http.Request) error {
			c, err := p.of(r.PathValue("ref"))
			if err != nil {
				return err
			}
			return f(w, r, c)
		}))
	}
	of("GET "+fetchPath, func(w http.ResponseWriter, _ *http.Request, c *content) error {
		return json.NewEncoder(w).Encode(c.fetched())
	})
	of("DELETE "+fetchPath, func(_ http.ResponseWriter, _ *http.Request, c *content) error { return p.forget(c) })
	of("GET "+filePath, func(w http.ResponseWriter, r *http.Request, c *content) error {
		return serveFile(w, r, c.path(contentFile))
	})
	return mux
}
