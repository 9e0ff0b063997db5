package systemtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

// testTarget fetches an object as a load generator does: by its target alone.
func testTarget(t *testing.T, n system.Store) {
	s, ok := n.(system.HTTPServer)
	if !ok {
		t.Skip("the system serves no HTTP")
	}
	const size = 600 << 10
	data := Bytes("target", size)
	ref, err := system.Seed(Context(t), n, "target", size, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	target, err := s.Target(ref)
	if err != nil {
		t.Fatal(err)
	}
	status, body, _ := Fetch(t, target, "")
	if status != http.StatusOK || !bytes.Equal(body, data) {
		t.Errorf("GET %s: status %d, %d bytes (right: %v)", target.URL, status, len(body), bytes.Equal(body, data))
	}
	if _, ok := n.(system.Ranger); ok {
		status, body, head := Fetch(t, target, "bytes=1000-2999")
		if status != http.StatusPartialContent || !bytes.Equal(body, data[1000:3000]) {
			t.Errorf("GET %s bytes 1000-2999: status %d, %d bytes", target.URL, status, len(body))
		}
		if got, want := head.Get("Content-Range"), fmt.Sprintf("bytes 1000-2999/%d", size); got != want {
			t.Errorf("Content-Range is %q, want %q", got, want)
		}
	}
}

// Fetch gets a target with the standard client, asking for no compression.
func Fetch(t *testing.T, target system.HTTPTarget, rangeHeader string) (int, []byte, http.Header) {
	t.Helper()
	client, close := httpClient(t, target)
	defer close()
	req, err := http.NewRequestWithContext(Context(t), http.MethodGet, target.URL.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = target.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Accept-Encoding", "identity")
	if rangeHeader != "" {
		req.Header.Set("Range", rangeHeader)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body, resp.Header
}

// testCutOff leaves many clients in the middle of an answer: servers have been
// seen to answer nobody for a minute after that.
func testCutOff(t *testing.T, s Suite, n system.Store) {
	server, isServer := n.(system.HTTPServer)
	h, hasHealth := n.(system.Healther)
	if !isServer || !hasHealth {
		t.Skip("the system serves no HTTP, or has no health probe")
	}
	clients, size := int(s.size(100, 10)), s.size(24*mib, 12*mib)
	ref, err := system.Seed(Context(t), n, "cut-off", size, Content("cut-off", size))
	if err != nil {
		t.Fatal(err)
	}
	target, err := server.Target(ref)
	if err != nil {
		t.Fatal(err)
	}
	client, close := httpClient(t, target)
	defer close()
	ctx, cancel := context.WithCancel(Context(t))
	defer cancel()
	var g errgroup.Group
	var half sync.WaitGroup
	half.Add(clients)
	for range clients {
		g.Go(func() error {
			var once sync.Once
			defer once.Do(half.Done)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.URL.String(), nil)
			if err != nil {
				return err
			}
			if target.Header != nil {
				req.Header = target.Header.Clone()
			}
			resp, err := client.Do(req)
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
			once.Do(half.Done)
			<-ctx.Done() // with the answer under way
			return nil
		})
	}
	half.Wait()
	cancel()
	if err := g.Wait(); err != nil {
		t.Errorf("before the cut: %v", err)
	}
	from := time.Now()
	if err := h.Health(Context(t)); err != nil {
		t.Errorf("health after %d clients were cut off: %v", clients, err)
	}
	if took := time.Since(from); took > soon {
		t.Errorf("took %v to answer after %d clients were cut off", took, clients)
	}
}

// httpClient is the standard client with a target's trust, asking for no compression.
func httpClient(t *testing.T, target system.HTTPTarget) (c *http.Client, close func()) {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	if target.CAFile != "" {
		pem, err := os.ReadFile(target.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		tr.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	return &http.Client{Transport: tr}, tr.CloseIdleConnections
}
