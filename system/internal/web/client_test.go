package web

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lab is a server and its client, with counts on both sides.
type lab struct {
	client  *Client
	target  system.HTTPTarget
	dials   atomic.Int64
	resumed atomic.Int64 // requests on a resumed TLS session
	mu      sync.Mutex
	peers   map[string]bool // client addresses seen by the server
	protos  map[string]bool
}

func newLab(t *testing.T, scheme string) *lab {
	l := &lab{peers: map[string]bool{}, protos: map[string]bool{}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.peers[r.RemoteAddr], l.protos[r.Proto] = true, true
		l.mu.Unlock()
		if r.TLS != nil && r.TLS.DidResume {
			l.resumed.Add(1)
		}
		n, err := io.Copy(io.Discard, r.Body)
		switch {
		case err != nil:
			panic(err)
		case r.Method == http.MethodPut && n > 0:
			w.WriteHeader(http.StatusCreated)
		case r.URL.Path == "/none":
			http.Error(w, strings.Repeat("no such object, at length; ", 1000), http.StatusNotFound)
		case r.Method == http.MethodGet:
			w.Write(make([]byte, 100_000))
		}
	}))
	switch scheme {
	case "h2":
		s.EnableHTTP2 = true
		s.StartTLS()
	case "https":
		s.StartTLS()
	default:
		s.Start()
	}
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	must(t, err)
	l.target.URL = u
	if scheme != "http" {
		l.target.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		must(t, os.WriteFile(l.target.CAFile, block, 0o600))
	}
	l.client, err = New("test", func(ctx context.Context, network, address string) (net.Conn, error) {
		l.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}, l.target)
	must(t, err)
	t.Cleanup(l.client.Close)
	return l
}

// operation runs the i-th of a mixture of all operations of nodes.
func (l *lab) operation(ctx context.Context, i int) error {
	var err error
	switch i % 4 {
	case 0:
		err = l.client.Get(ctx, l.target, io.Discard)
	case 3:
		none := l.target
		none.URL = none.URL.JoinPath("none")
		if err = l.client.Get(ctx, none, io.Discard); errors.Is(err, system.ErrNotFound) {
			err = nil
		}
	case 1:
		_, _, err = l.client.Head(ctx, l.target)
	case 2:
		const size = 300_000
		_, err = l.client.Send(ctx, http.MethodPut, l.target, size, io.LimitReader(zeros{}, size))
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestKeptAndFresh(t *testing.T) {
	const n = 12
	for scheme, proto := range map[string]string{"http": "HTTP/1.1", "https": "HTTP/1.1", "h2": "HTTP/2.0"} {
		t.Run(scheme, func(t *testing.T) {
			l := newLab(t, scheme)
			for _, c := range []struct {
				what        string
				fresh       bool
				connections int // in total since the start
			}{
				{"kept", false, 1}, {"fresh", true, 1 + n},
				{"kept again", false, 1 + n}, // new connections are kept from then on
			} {
				for i := range n {
					if c.fresh {
						l.client.Redial()
					}
					must(t, l.operation(t.Context(), i))
				}
				if got := l.dials.Load(); got != int64(c.connections) || len(l.peers) != c.connections {
					t.Errorf("%s: after %d requests %d dials, the server saw %d connections; want %d", c.what, n, got,
						len(l.peers), c.connections)
				}
			}
			if l.resumed.Load() != 0 {
				t.Errorf("%d requests on resumed sessions", l.resumed.Load())
			}
			if len(l.protos) != 1 || !l.protos[proto] {
				t.Errorf("spoke %v", l.protos)
			}
		})
	}
}

// TestFreshAmongOthers checks that a connection that another operation returns in between does not
// serve a request that has to dial.
func TestFreshAmongOthers(t *testing.T) {
	for _, scheme := range []string{"http", "h2"} {
		t.Run(scheme, func(t *testing.T) {
			l := newLab(t, scheme)
			const workers, each = 8, 6
			g, ctx := errgroup.WithContext(t.Context())
			for range workers {
				g.Go(func() error {
					for i := range each {
						l.client.Redial()
						if err := l.operation(ctx, i); err != nil {
							return err
						}
					}
					return nil
				})
			}
			must(t, g.Wait())
			// There may be more: net/http dials again for a request whose HTTP/2 connection was
			// closed before the request was sent.
			if got := l.dials.Load(); got < workers*each || len(l.peers) < workers*each {
				t.Errorf("%d requests took %d dials, the server saw %d connections", workers*each, got, len(l.peers))
			}
		})
	}
}
