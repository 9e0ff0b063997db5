package static

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Serve implements system.Embedded: the file server of `plimsoll node static`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node static", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "", "`address` to listen on")
	dir := flags.String("dir", "", "`directory` to serve")
	cert := flags.String("cert", "", "PEM `file` of the certificate; with --key: serve HTTPS")
	key := flags.String("key", "", "PEM `file` of the key")
	h2 := flags.Bool("h2", true, "with HTTPS: offer HTTP/2")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *listen == "" || *dir == "" || flags.NArg() > 0 {
		return errors.New("static: give --listen ADDRESS and --dir DIRECTORY, and nothing else")
	}
	server := member.Server{What: "files", Address: *listen, Handler: handler(*dir)}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return fmt.Errorf("static: %w", err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
		if *h2 {
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
