package member

import (
	"encoding/hex"
	"fmt"
	"net/netip"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
)

// CID returns an error if ref is not a CID, for systems whose refs are CIDs.
func CID(name string, ref system.Ref) error {
	if _, err := cid.Decode(string(ref)); err != nil {
		return fmt.Errorf("%s: %q is not a CID (%w): %w", name, ref, err, system.ErrBadRef)
	}
	return nil
}

// Hex returns an error if ref is not the hash of size bytes in hexadecimal digits, for systems whose
// refs are hashes.
func Hex(name string, ref system.Ref, size int) error {
	b, err := hex.DecodeString(string(ref))
	if err != nil || len(b) != size || hex.EncodeToString(b) != string(ref) {
		return fmt.Errorf("%s: %q is not a hash of %d hex digits in lower case: %w", name, ref, 2*size, system.ErrBadRef)
	}
	return nil
}

// Multiaddr returns a TCP address in libp2p's notation.
func Multiaddr(at netip.AddrPort) string {
	family := "ip6"
	if at.Addr().Is4() {
		family = "ip4"
	}
	return fmt.Sprintf("/%s/%s/tcp/%d", family, at.Addr(), at.Port())
}
