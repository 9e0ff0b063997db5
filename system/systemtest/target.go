package systemtest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// testTarget fetches an object as a load generator does: by its target alone.
func testTarget(t *testing.T, n system.Node) {
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
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	if target.CAFile != "" {
		pem, err := os.ReadFile(target.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		tr.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
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
	resp, err := (&http.Client{Transport: tr}).Do(req)
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
