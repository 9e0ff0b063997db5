package trust

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileIsTrustedBesidesTheSystem(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Skip("no certificates of a system here: ", err)
	}
	want.AddCert(server.Certificate())
	c, err := Config(file, false)
	if err != nil || !c.RootCAs.Equal(want) || c.InsecureSkipVerify {
		t.Errorf("got %v, %v: not the certificate besides those of the system", c, err)
	}
}

func TestFilesWithoutCertificate(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, filepath.Join(dir, "none")} {
		if _, err := Config(file, false); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
