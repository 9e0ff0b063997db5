// Package selfsigned creates the certificates of HTTPS servers that Plimsoll starts, each for one
// address.
package selfsigned

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Files are the paths of PEM files.
type Files struct {
	CA   string // the certificate, to be trusted: on the client's host
	Cert string // the same: on the server's host, like Key
	Key  string // its key
}

// Write creates a certificate for h's address, in the directories of client and server.
func Write(ctx context.Context, d system.Deployment, h testbed.Host) (Files, error) {
	addr := h.Addr()
	fail := func(err error) (Files, error) {
		return Files{}, fmt.Errorf("make a certificate for %s: %w", addr, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: addr.String()},
		// Valid since yesterday: the clock of an attached observer may be off.
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		IPAddresses: []net.IP{addr.AsSlice()}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certDER, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err, err2); err != nil {
		return fail(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	own := d.DirOf(h)
	f := Files{CA: filepath.Join(d.DirOf(d.Client), h.Name()+"-ca.pem"), Cert: filepath.Join(own, "cert.pem"),
		Key: filepath.Join(own, "key.pem")}
	for _, file := range []struct {
		on   testbed.Host
		path string
		b    []byte
	}{
		{d.Client, f.CA, certPEM}, {h, f.Cert, certPEM}, {h, f.Key, keyPEM},
	} {
		if err := file.on.Files().Write(ctx, file.path, 0o600, bytes.NewReader(file.b)); err != nil {
			return fail(err)
		}
	}
	return f, nil
}
