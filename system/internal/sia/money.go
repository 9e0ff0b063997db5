package sia

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
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
// text. Its Int is nil when the daemon did not report it.
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

// Plus is the sum of all that were reported; not reported when h was not.
func (h Hastings) Plus(all ...Hastings) Hastings { return h.with((*big.Int).Add, all) }

// Minus is what is left of h.
func (h Hastings) Minus(all ...Hastings) Hastings { return h.with((*big.Int).Sub, all) }

func (h Hastings) with(do func(to, a, b *big.Int) *big.Int, all []Hastings) Hastings {
	if h.Int == nil {
		return h
	}
	out := new(big.Int).Set(h.Int)
	for _, a := range all {
		if a.Int != nil {
			do(out, out, a.Int)
		}
	}
	return Hastings{out}
}

// Accounts says where a contract C reports its money.
type Accounts[C any] struct {
	Total, Unspent func(C) Hastings
	Purposes       []Purpose[C]
}

// Purpose is one that a contract pays for.
type Purpose[C any] struct {
	Name string
	Of   func(C) Hastings
}

// Current are the readings of contracts that are not over.
func (a Accounts[C]) Current(contracts []C) []system.Reading {
	return append([]system.Reading{
		sum(contracts, a.Total).reading(system.ReadSpent), sum(contracts, a.Unspent).reading(system.ReadUnspent),
	}, a.purposes(system.ReadSpentPrefix, contracts)...)
}

// Ended are the readings of contracts that are over: what they had used, and what they had not.
func (a Accounts[C]) Ended(contracts []C) []system.Reading {
	used := func(c C) Hastings {
		if a.Unspent(c).Int == nil {
			return Hastings{}
		}
		return a.Total(c).Minus(a.Unspent(c))
	}
	return append([]system.Reading{
		sum(contracts, used).reading(system.ReadEnded), sum(contracts, a.Unspent).reading(system.ReadEndedUnspent),
	}, a.purposes(system.ReadEndedPrefix, contracts)...)
}

func (a Accounts[C]) purposes(prefix string, contracts []C) (out []system.Reading) {
	for _, p := range a.Purposes {
		if t := sum(contracts, p.Of); t.missing == 0 || t.missing < t.of { // else this release does not report it
			out = append(out, t.reading(prefix+p.Name))
		}
	}
	return out
}

// tally is a sum over contracts.
type tally struct {
	*big.Int
	missing, of int // contracts that did not report their part
}

// sum is the exact sum of a part of each contract.
func sum[C any](contracts []C, part func(C) Hastings) tally {
	t := tally{new(big.Int), 0, len(contracts)}
	for _, c := range contracts {
		if h := part(c); h.Int != nil {
			t.Add(t.Int, h.Int)
		} else {
			t.missing++
		}
	}
	return t
}

// reading is bad when a contract did not report its part.
func (t tally) reading(name string) system.Reading {
	r := system.Money(name, t.Int, Decimals)
	if t.missing > 0 {
		r.Bad = fmt.Sprintf("not reported by %d of %d contracts", t.missing, t.of)
	}
	return r
}
