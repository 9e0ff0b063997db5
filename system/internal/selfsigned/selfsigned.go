// Package selfsigned creates the certificates of HTTPS servers that Plimsoll starts: a root for the
// deployment, and a leaf for one address.
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
	CA   string // the root, to be trusted: on the client's host
	Cert string // the leaf, then the root: on the server's host, like Key
	Key  string // the leaf's key
}

// Write creates a root and a leaf for h's address, in the directories of client and server. The
// root's key is discarded.
func Write(ctx context.Context, d system.Deployment, h testbed.Host) (Files, error) {
	addr := h.Addr()
	fail := func(err error) (Files, error) {
		return Files{}, fmt.Errorf("make a certificate for %s: %w", addr, err)
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	leafKey, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err, err2); err != nil {
		return fail(err)
	}
	// Valid since yesterday: the clock of an attached observer may be off.
	from, to := time.Now().Add(-24*time.Hour), time.Now().Add(365*24*time.Hour)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Plimsoll test root"},
		NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: addr.String()},
		NotBefore: from, NotAfter: to, IPAddresses: []net.IP{addr.AsSlice()}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	leafDER, err2 := x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
	keyDER, err3 := x509.MarshalPKCS8PrivateKey(leafKey)
	if err := errors.Join(err, err2, err3); err != nil {
		return fail(err)
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	own := d.DirOf(h)
	f := Files{CA: filepath.Join(d.DirOf(d.Client), h.Name()+"-ca.pem"), Cert: filepath.Join(own, "cert.pem"),
		Key: filepath.Join(own, "key.pem")}
	for _, file := range []struct {
		on   testbed.Host
		path string
		b    []byte
	}{
		{d.Client, f.CA, block("CERTIFICATE", rootDER)},
		{h, f.Cert, append(block("CERTIFICATE", leafDER), block("CERTIFICATE", rootDER)...)},
		{h, f.Key, block("PRIVATE KEY", keyDER)},
	} {
		if err := file.on.Files().Write(ctx, file.path, 0o600, bytes.NewReader(file.b)); err != nil {
			return fail(err)
		}
	}
	return f, nil
}
