package boxo

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// keyVariable is the environment variable that passes a node the key of its swarm.
const keyVariable = "PLIMSOLL_SWARM_KEY"

// newSwarm returns the kind of the nodes of a new swarm, which share a new key. A publisher returns
// the CID, which follows from the content and option chunk.
func newSwarm() *member.Swarm {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return &member.Swarm{
		Name: name,
		Ref:  valid,
		Env:  []string{keyVariable + "=" + hex.EncodeToString(key)},
		Address: func(listen string) (string, error) {
			private, err := identity(key, listen)
			if err != nil {
				return "", err
			}
			id, err := peer.IDFromPrivateKey(private)
			if err != nil {
				return "", err
			}
			return member.Multiaddr(netip.MustParseAddrPort(listen)) + "/p2p/" + id.String(), nil
		},
	}
}

// identity returns the private key of the node that listens at an address, in the swarm with key.
func identity(key []byte, listen string) (crypto.PrivKey, error) {
	seed := sha256.Sum256(append(key[:len(key):len(key)], listen...))
	return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}
