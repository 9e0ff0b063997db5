package member

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// The control API, defined by Plimsoll and served to the node's own host.
const (
	HealthPath  = "/health"  // of every process: GET, answered once it is ready
	publishPath = "/publish" // PUT the content, get the result of Publish
	fetchPath   = "/fetch/"  // POST a task, GET a system.Progress, DELETE data and task
	filePath    = "/file/"   // GET the content from disk
)

// Config is the configuration of a node's process.
type Config struct {
	Control string         // address of the control API
	Listen  string         // address for peers
	Dir     string         // of contents and tasks
	Options system.Options // of the system
}

// Argument returns the configuration of a process as its only argument.
func Argument(config any) string {
	b, _ := json.Marshal(config) // strings and numbers cannot fail
	return string(b)
}

// Configure reads the configuration of this process from its argument.
func Configure(args []string, config any) error {
	if err := json.Unmarshal([]byte(strings.Join(args, " ")), config); err != nil {
		return fmt.Errorf("read the configuration of this process, its only argument, as JSON: %w", err)
	}
	return nil
}

// Node implements the operations of the process. An unknown ref returns system.ErrNotFound.
type Node interface {
	// Publish reads exactly size bytes of r, and returns what a node needs to fetch them, like a
	// .torrent file. The title names them, if the system has names.
	Publish(ctx context.Context, title string, size int64, r io.Reader) (ref system.Ref, said []byte, err error)
	Fetch(ctx context.Context, ref system.Ref, task Task) error
	Progress(ctx context.Context, ref system.Ref) (system.Progress, error)
	// ReadBack answers with the content as it is on disk.
	ReadBack(w http.ResponseWriter, r *http.Request, ref system.Ref) error
	Forget(ctx context.Context, ref system.Ref) error
}

// published is the answer to a publication.
type published struct {
	Ref      system.Ref
	Metadata []byte
}

// Handler serves the control API.
func Handler(n Node) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+HealthPath, func(http.ResponseWriter, *http.Request) {})
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request, ref system.Ref) error) {
		mux.HandleFunc(pattern, Answer(func(w http.ResponseWriter, r *http.Request) error {
			return f(w, r, system.Ref(r.PathValue("ref")))
		}))
	}
	handle("PUT "+publishPath, func(w http.ResponseWriter, r *http.Request, _ system.Ref) error {
		ref, said, err := n.Publish(r.Context(), r.URL.Query().Get("title"), r.ContentLength, r.Body)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(published{ref, said})
	})
	handle("POST "+fetchPath+"{ref}", func(_ http.ResponseWriter, r *http.Request, ref system.Ref) error {
		var task Task
		if err := json.NewDecoder(r.Body).Decode(&task); err != nil {
			return err
		}
		return n.Fetch(r.Context(), ref, task)
	})
	handle("GET "+fetchPath+"{ref}", func(w http.ResponseWriter, r *http.Request, ref system.Ref) error {
		f, err := n.Progress(r.Context(), ref)
		if err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(f)
	})
	handle("DELETE "+fetchPath+"{ref}", func(_ http.ResponseWriter, r *http.Request, ref system.Ref) error {
		return n.Forget(r.Context(), ref)
	})
	handle("GET "+filePath+"{ref}", n.ReadBack)
	return mux
}

// Answer converts errors to HTTP statuses.
func Answer(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch err := f(w, r); {
		case errors.Is(err, system.ErrNotFound):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, system.ErrBadRef):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// ServeFile answers with a file from the node's disk.
func ServeFile(w http.ResponseWriter, r *http.Request, path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing of it is on disk: %w", system.ErrNotFound)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "application/octet-stream") // otherwise ServeContent reads the file to guess it
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}

// Server is an HTTP service of a node at an address.
type Server struct {
	What, Address string
	Handler       http.Handler
	TLS           *tls.Config // nil: plain HTTP
}

// Serve serves until ctx ends, which is not an error; name is the prefix of other errors.
func Serve(ctx context.Context, name string, stdout io.Writer, servers ...Server) error {
	ended := make(chan error, len(servers))
	for _, s := range servers {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		srv := &http.Server{Handler: s.Handler, ReadHeaderTimeout: time.Minute}
		defer srv.Close()
		scheme := "http"
		if s.TLS != nil {
			l, scheme = tls.NewListener(l, s.TLS), "https"
		}
		fmt.Fprintf(stdout, "%s: %s at %s://%s/\n", name, s.What, scheme, l.Addr())
		go func() { ended <- srv.Serve(l) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// Merge appends the elements of more that are missing in list.
func Merge(list, more []string) []string {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Receive writes the size bytes of r to a new file in a directory of this process's host, which the caller renames or
// removes. It passes each block to each, for hashing.
func Receive(ctx context.Context, dir string, size, block int64, r io.Reader, each func([]byte)) (path string,
	err error) {
	path = filepath.Join(dir, ".publish-"+rand.Text())
	body, err := web.Exactly(r, size)
	if err != nil {
		return path, err
	}
	b := &blocks{size: int(block), each: each}
	if err = (testbed.LocalFiles{}).Write(ctx, path, 0o644, io.TeeReader(body, b)); err == nil && len(b.part) > 0 {
		each(b.part)
	}
	return path, err
}

// blocks splits the written bytes into blocks of a fixed size.
type blocks struct {
	size int
	part []byte // the incomplete block
	each func([]byte)
}

// Write implements io.Writer.
func (b *blocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), b.size-len(b.part))
		b.part, rest = append(b.part, rest[:n]...), rest[n:]
		if len(b.part) == b.size {
			b.each(b.part)
			b.part = b.part[:0]
		}
	}
	return len(p), nil
}
