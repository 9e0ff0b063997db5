package sia

import (
	"fmt"
	"math/big"
	"strings"
)

// Decimals: 10^24 hastings make a siacoin.
const Decimals = 24

// Bytes of a sector: of the public networks, and of the private one that a siad with dev
// constants starts.
const (
	Sector    = 4 << 20
	DevSector = 256 << 10
)

// Hastings is an amount of money, larger than any integer type and so sent as
// text. Its Int is nil when the daemon did not tell.
type Hastings struct{ *big.Int }

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hastings) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	if s == "null" || s == "" {
		h.Int = nil
		return nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return fmt.Errorf("%.80s is no amount of hastings", text)
	}
	h.Int = n
	return nil
}
