package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Authority issues the certificates of one run. It lives in memory and is forgotten
// with the run.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Credentials are what one end of a connection shows and trusts: certificates and a key
// in DER.
type Credentials struct{ CA, Cert, Key []byte }

// lifetime is that of all certificates: longer than a run, and no longer.
const lifetime = 100 * 24 * time.Hour

// serverName is every agent's: which of them answers, its address says.
const serverName = "plimsoll-agent"

// NewAuthority makes one.
func NewAuthority() (*Authority, error) {
	a := &Authority{cert: template("plimsoll run")}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	c, err := a.issue(a.cert)
	if err != nil {
		return nil, err
	}
	if a.key, err = x509.ParseECPrivateKey(c.Key); err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(c.Cert)
	return a, err
}

// Issue makes the credentials of an agent or, with server false, of the engine.
func (a *Authority) Issue(server bool) (Credentials, error) {
	t := template("engine")
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if server {
		t = template(serverName)
		t.DNSNames, t.ExtKeyUsage = []string{serverName}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	return a.issue(t)
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), // clocks differ
	}
}

// issue signs a certificate with a key of its own; the authority's own with itself.
func (a *Authority) issue(t *x509.Certificate) (c Credentials, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, fmt.Errorf("agent: make a key: %w", err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	if c.Cert, err = x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, by); err == nil {
		c.Key, err = x509.MarshalECPrivateKey(key)
	}
	if err != nil {
		return c, fmt.Errorf("agent: make a certificate: %w", err)
	}
	c.CA = a.cert.Raw
	return c, nil
}

// config is the TLS of either end: 1.3, and both show a certificate of the run.
func (c Credentials) config() (*tls.Config, error) {
	ca, err := x509.ParseCertificate(c.CA)
	if err != nil {
		return nil, fmt.Errorf("agent: the run's authority: %w", err)
	}
	key, err := x509.ParseECPrivateKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("agent: the key: %w", err)
	}
	if len(c.Cert) == 0 {
		return nil, errors.New("agent: the certificate is missing")
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: serverName,
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.Cert}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
