package agent

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/gob"
	"fmt"
	"math/big"
	"time"
)

// Credentials are the certificate and key of one end of a connection, and the only certificate that it trusts:
// that of the other end. All are in DER.
type Credentials struct{ Cert, Key, Peer []byte }

// NewCredentials creates the credentials of one run, which exist only in memory.
func NewCredentials() (engine, agents Credentials, err error) {
	if engine.Cert, engine.Key, err = newCertificate(); err == nil {
		agents.Cert, agents.Key, err = newCertificate()
	}
	if err != nil {
		err = fmt.Errorf("agent: make a certificate: %w", err)
	}
	engine.Peer, agents.Peer = agents.Cert, engine.Cert
	return engine, agents, err
}

// Encoded returns the credentials as an agent reads them.
func (c Credentials) Encoded() []byte {
	var b bytes.Buffer
	_ = gob.NewEncoder(&b).Encode(c) // writing bytes to memory cannot fail
	return b.Bytes()
}

// lifetime is the validity of certificates: longer than any run.
const lifetime = 100 * 24 * time.Hour

// serverName is the TLS server name of every agent; they are distinguished by address.
const serverName = "plimsoll-agent"

// newCertificate creates a self-signed certificate.
func newCertificate() (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if key, err = x509.MarshalECPrivateKey(k); err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), // clocks differ
		NotAfter:  time.Now().Add(lifetime),
	}
	cert, err = x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k)
	return cert, key, err
}

// config returns the TLS configuration of either end: TLS 1.3 with certificates on both sides.
func (c Credentials) config() (*tls.Config, error) {
	peer, err := x509.ParseCertificate(c.Peer)
	if err != nil {
		return nil, fmt.Errorf("agent: the certificate of the other end: %w", err)
	}
	key, err := x509.ParseECPrivateKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("agent: the key: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(peer)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: serverName,
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.Cert}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
