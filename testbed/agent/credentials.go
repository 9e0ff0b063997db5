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

// Credentials are what one end of a connection shows, and what it trusts: the other end's certificate alone.
// All are in DER.
type Credentials struct{ Cert, Key, Peer []byte }

// NewCredentials makes those of one run. They live in memory, and are forgotten with it.
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

// Encoded is what an agent reads.
func (c Credentials) Encoded() []byte {
	var b bytes.Buffer
	_ = gob.NewEncoder(&b).Encode(c) // bytes into memory: it cannot fail
	return b.Bytes()
}

// lifetime is that of all certificates: longer than a run, and no longer.
const lifetime = 100 * 24 * time.Hour

// serverName is every agent's: which of them answers, its address says.
const serverName = "plimsoll-agent"

// newCertificate makes one that its own key has signed.
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
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), // clocks differ
	}
	cert, err = x509.CreateCertificate(rand.Reader, t, t, &k.PublicKey, k)
	return cert, key, err
}

// config is the TLS of either end: 1.3, and both show a certificate of the run.
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
