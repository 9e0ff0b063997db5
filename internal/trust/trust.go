// Package trust says which HTTPS servers clients trust.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Config returns a configuration that trusts the root certificates in a PEM file, if one is named,
// besides those of the system or, if insecure, any certificate.
func Config(caFile string, insecure bool) (*tls.Config, error) {
	c := &tls.Config{InsecureSkipVerify: insecure}
	if caFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("root certificate: %w", err)
	}
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("root certificate: %s holds no certificate in PEM form", caFile)
	}
	return c, nil
}
