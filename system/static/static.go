// Package static is a file server of the Go standard library in its own process: a baseline that
// needs no installation.
package static

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/fileserver"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "static"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther = (*fileserver.Node)(nil)
	_ system.Seeder   = (*fileserver.Node)(nil)
)

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.Starter: it starts one server on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{"version": runtime.Version(), "server": "net/http", "put": "http"}
	return fileserver.Cluster(ctx, name, d, identity, func(p fileserver.Place) (testbed.Command, error) {
		cmd, err := d.Node(name, member.Argument(config{p.Address, p.Data, p.TLS, d.Options.Bool("h2")}))
		return testbed.Command{Args: cmd}, err
	})
}

// config is the configuration of a server's process.
type config struct {
	Listen, Dir string
	TLS         *selfsigned.Files // nil: plain HTTP
	H2          bool              // with TLS: offer HTTP/2
}

// Serve implements system.Embedded: the file server of `plimsoll node static`.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var c config
	if err := member.Configure(args, &c); err != nil {
		return err
	}
	server := member.Server{What: "files", Address: c.Listen, Handler: handler(c.Dir)}
	if c.TLS != nil {
		pair, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return fmt.Errorf("static: %w", err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
		if c.H2 {
			server.TLS.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	return member.Serve(ctx, name, stdout, server)
}

// handler serves the regular files of dir: GET and HEAD with ranges, PUT, DELETE.
func handler(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := r.URL.Path[min(1, len(r.URL.Path)):]
		if err := disk.Valid(file); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		path := filepath.Join(dir, file)
		var err error
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			err = member.ServeFile(w, r, path)
		case http.MethodPut:
			if r.ContentLength < 0 {
				http.Error(w, "PUT needs a Content-Length", http.StatusLengthRequired)
				return
			}
			if err = (disk.Dir{Files: testbed.LocalFiles{}, Path: dir}).Write(r.Context(), file, r.ContentLength,
				r.Body); err == nil {
				w.WriteHeader(http.StatusCreated)
			}
		case http.MethodDelete:
			if err = os.Remove(path); err == nil {
				w.WriteHeader(http.StatusNoContent)
			}
		default:
			http.Error(w, "only GET, HEAD, PUT and DELETE", http.StatusMethodNotAllowed)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, system.ErrNotFound):
			http.Error(w, "no such object", http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}
