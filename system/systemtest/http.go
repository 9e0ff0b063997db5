package systemtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

// target fetches an object as a load generator does: by its target alone.
func (k *objects) target() {
	const size = 600 << 10
	data := Bytes("target", size)
	target, err := k.n.(system.HTTPServer).Target(k.seeded("target", size))
	must(k.T, "target", err)
	status, body, _ := fetch(k.T, k.from.Dial, target, "")
	if status != http.StatusOK || !bytes.Equal(body, data) {
		k.Errorf("GET %s: status %d, %d bytes (right: %v)", target.URL, status, len(body), bytes.Equal(body, data))
	}
	if _, ok := k.n.(system.Ranger); !ok {
		return
	}
	status, body, head := fetch(k.T, k.from.Dial, target, "bytes=1000-2999")
	if status != http.StatusPartialContent || !bytes.Equal(body, data[1000:3000]) {
		k.Errorf("GET %s bytes 1000-2999: status %d, %d bytes", target.URL, status, len(body))
	}
	if got, want := head.Get("Content-Range"), fmt.Sprintf("bytes 1000-2999/%d", size); got != want {
		k.Errorf("Content-Range is %q, want %q", got, want)
	}
}

// Fetch gets a target with the standard client, asking for no compression.
func Fetch(t *testing.T, target system.HTTPTarget, rangeHeader string) (int, []byte, http.Header) {
	t.Helper()
	return fetch(t, nil, target, rangeHeader)
}

// dialer connects; nil: from the test's own host.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func fetch(t *testing.T, dial dialer, target system.HTTPTarget, rangeHeader string) (int, []byte, http.Header) {
	t.Helper()
	client := httpClient(t, dial, target)
	resp, err := client.Do(request(Context(t), t, target, rangeHeader))
	must(t, "GET", err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, "GET", err)
	return resp.StatusCode, body, resp.Header
}

func request(ctx context.Context, t *testing.T, target system.HTTPTarget, rangeHeader string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
	must(t, "request", err)
	if target.Header != nil {
		req.Header = target.Header.Clone()
	}
	req.Header.Set("Accept-Encoding", "identity")
	if rangeHeader != "" {
		req.Header.Set("Range", rangeHeader)
	}
	return req
}

// httpClient is the standard client with a target's trust, asking for no compression.
func httpClient(t *testing.T, dial dialer, target system.HTTPTarget) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	if target.CAFile != "" {
		pem, err := os.ReadFile(target.CAFile)
		must(t, "root certificate", err)
		tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		tr.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	return &http.Client{Transport: tr}
}

// cutOff leaves many clients in the middle of an answer: servers have been
// seen not to answer for a minute after that.
func (k *objects) cutOff() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	clients, size := int(k.size(100, 10)), k.size(24*mib, 12*mib)
	target, err := k.n.(system.HTTPServer).Target(k.seeded("cut-off", size))
	must(k.T, "target", err)
	client := httpClient(k.T, k.from.Dial, target)
	ctx, cancel := context.WithCancel(Context(k.T))
	defer cancel()
	var g errgroup.Group
	var half sync.WaitGroup
	half.Add(clients)
	for range clients {
		g.Go(func() error {
			arrived := sync.OnceFunc(half.Done)
			defer arrived()
			resp, err := client.Do(request(ctx, k.T, target, ""))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", resp.StatusCode)
			}
			if _, err := io.CopyN(io.Discard, resp.Body, mib); err != nil {
				return err
			}
			arrived()
			<-ctx.Done() // with the answer under way
			return nil
		})
	}
	half.Wait()
	cancel()
	if err := g.Wait(); err != nil {
		k.Errorf("before the cut: %v", err)
	}
	within(k.T, "health after clients were cut off", func() {
		if err := h.Health(Context(k.T)); err != nil {
			k.Errorf("health after %d clients were cut off: %v", clients, err)
		}
	})
}
