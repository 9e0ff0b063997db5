// Package selfsigned makes the certificates of the HTTPS servers we start: a
// root that lives as long as the deployment, and a leaf for one address.
package selfsigned

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Files are the paths of PEM files.
type Files struct {
	CA   string // the root, to be trusted by clients
	Cert string // the leaf, then the root
	Key  string // the leaf's key
}

// Write makes a root and a leaf for addr in dir. The root's key is dropped.
func Write(dir string, addr netip.Addr) (Files, error) {
	fail := func(err error) (Files, error) {
		return Files{}, fmt.Errorf("make a certificate for %s: %w", addr, err)
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	// A day before now: the clock of an attached observer may be off.
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
	if err != nil {
		return fail(err)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return fail(err)
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	f := Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, b := range map[string][]byte{
		f.CA:   block("CERTIFICATE", rootDER),
		f.Cert: append(block("CERTIFICATE", leafDER), block("CERTIFICATE", rootDER)...),
		f.Key:  block("PRIVATE KEY", keyDER),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return fail(err)
		}
	}
	return f, nil
}
