package tahoe

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// announcement is what clients need to know about a storage node. An introducer would distribute
// it; no single file of the node contains all of it.
type announcement struct {
	key  string // public key without its prefix; also permutes the servers
	furl string // Foolscap
	nurl string // Great Black Swamp
}

// furlFile is where a storage node writes its address.
const furlFile = "private/storage.furl"

// announced reads the announcement from the files that a storage node wrote when it began to listen
// at address, host:port.
func announced(dir disk.Dir, address string) (announcement, error) {
	pub, err := dir.Files.ReadFile(dir.Sub("node.pubkey").Path)
	furl, err2 := dir.Files.ReadFile(dir.Sub(furlFile).Path)
	cert, err3 := dir.Files.ReadFile(dir.Sub("private/node.pem").Path)
	if err := cmp.Or(err, err2, err3); err != nil {
		return announcement{}, err
	}
	a := announcement{furl: strings.TrimSpace(string(furl))}
	var ok bool
	if a.key, ok = strings.CutPrefix(strings.TrimSpace(string(pub)), "pub-v0-"); !ok || a.key == "" {
		return a, fmt.Errorf("%s: no key of version 0 in it", dir.Sub("node.pubkey").Path)
	}
	a.nurl, err = nurl(cert, a.furl, address)
	return a, err
}

// nurl returns pb://SPKI@HOST:PORT/SWISSNUM#v=1, as specified in docs/specifications/url.rst of
// Tahoe-LAFS: SPKI is the base64url encoding, without padding, of the SHA-256 of the certificate's
// SubjectPublicKeyInfo, and the swiss number is taken from the furl.
func nurl(certificate []byte, furl, address string) (string, error) {
	slash := strings.LastIndexByte(furl, '/')
	if !strings.HasPrefix(furl, "pb://") || slash < len("pb://") || slash+1 == len(furl) {
		return "", fmt.Errorf("%q is not a furl", furl)
	}
	for {
		var block *pem.Block
		if block, certificate = pem.Decode(certificate); block == nil {
			return "", errors.New("node.pem holds no certificate")
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("node.pem: %w", err)
		}
		spki := sha256.Sum256(c.RawSubjectPublicKeyInfo)
		return "pb://" + base64.RawURLEncoding.EncodeToString(spki[:]) + "@" + address + furl[slash:] + "#v=1", nil
	}
}
