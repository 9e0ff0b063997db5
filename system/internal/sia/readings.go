package sia

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// Report returns a call of a poll that returns what read finds in the answer at path.
func Report[T any](a *API, path string, query url.Values, read func(answer T) []system.Reading) system.Call {
	return system.Call{Name: path, Read: func(ctx context.Context) ([]system.Reading, error) {
		var answer T
		if err := a.Get(ctx, path, query, &answer); err != nil {
			return nil, err
		}
		return read(answer), nil
	}}
}

// Value returns a reading.
func Value(name string, value float64) system.Reading {
	return system.Reading{Name: name, Value: value}
}

// Field is a number in a report.
type Field struct {
	path, name string // path of the field, with a dot between an object and its field, and the name of its reading
	read       func(json.RawMessage, *system.Reading) error
	list       bool // whether null means an empty list
}

// Number is a numeric field.
func Number(path, name string) Field { return field(path, name, func(v float64) float64 { return v }) }

// Flag is a boolean field; its reading is 1 for true, else 0.
func Flag(path, name string) Field {
	return field(path, name, func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	})
}

// Length is the length of a list in a field.
func Length(path, name string) Field {
	f := field(path, name, func(all []json.RawMessage) float64 { return float64(len(all)) })
	f.list = true
	return f
}

func field[T any](path, name string, value func(T) float64) Field {
	return Field{path: path, name: name, read: func(text json.RawMessage, r *system.Reading) error {
		var v T
		err := json.Unmarshal(text, &v)
		r.Value = value(v)
		return err
	}}
}

// Money is a field with an amount in hastings.
func Money(path, name string) Field {
	return Field{path: path, name: name, read: func(text json.RawMessage, r *system.Reading) error {
		var h Hastings
		err := h.UnmarshalJSON(text)
		if h.Int != nil {
			*r = system.Money(name, h.Int)
		}
		return err
	}}
}

// Fields is a Report of plain fields. Fields that the answer lacks have no reading.
func Fields(a *API, path string, query url.Values, fields ...Field) system.Call {
	return Report(a, path, query, func(answer map[string]json.RawMessage) (out []system.Reading) {
		for _, f := range fields {
			object, text := answer, json.RawMessage(nil)
			for part := range strings.SplitSeq(f.path, ".") {
				text, object = object[part], nil
				_ = json.Unmarshal(text, &object) // fails for the last part, which is not an object
			}
			if text == nil || string(text) == "null" && !f.list {
				continue
			}
			r := system.Reading{Name: f.name}
			if err := f.read(text, &r); err != nil {
				r.Bad = err.Error()
			}
			out = append(out, r)
		}
		return out
	})
}

// Sector sizes in bytes: of the public networks, and of the private network of a siad with dev
// constants.
const (
	Sector    = 4 << 20
	DevSector = 256 << 10
)

// Hastings is an amount of money. It may exceed any integer type, so the daemons send it as text.
// Int is nil if the daemon did not report it.
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

// Plus returns h plus all reported amounts. The sum is not reported if h is not.
func (h Hastings) Plus(all ...Hastings) Hastings { return h.with((*big.Int).Add, all) }

// Minus returns h minus all reported amounts. The difference is not reported if h is not.
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

// Account holds the costs of a contract.
type Account struct {
	Total, Unspent Hastings
	Parts          []Amount // what was spent on what; all contracts of a system have the same parts
}

// Amount is a named amount of money.
type Amount struct {
	Name string
	Is   Hastings
}

// Spent returns the readings of contracts that are not over.
func Spent[C any](contracts []C, account func(C) Account) []system.Reading {
	return sums(contracts, func(c C) []Amount {
		is := account(c)
		return is.amounts(system.ReadSpent, is.Total, system.ReadUnspent, system.ReadSpentPrefix)
	})
}

// Ended returns the readings of contracts that are over: what they had used, and what they had not.
func Ended[C any](contracts []C, account func(C) Account) []system.Reading {
	return sums(contracts, func(c C) []Amount {
		is, used := account(c), Hastings{}
		if is.Unspent.Int != nil {
			used = is.Total.Minus(is.Unspent)
		}
		return is.amounts(system.ReadEnded, used, system.ReadEndedUnspent, system.ReadEndedPrefix)
	})
}

func (a Account) amounts(name string, whole Hastings, unspent, prefix string) []Amount {
	all := []Amount{{name, whole}, {unspent, a.Unspent}}
	for _, p := range a.Parts {
		all = append(all, Amount{prefix + p.Name, p.Is})
	}
	return all
}

// sums adds up the amounts exactly. A reading is bad if a contract did not report its amount. A
// part that no contract reported has no reading, because this release does not know it.
func sums[C any](contracts []C, of func(C) []Amount) (out []system.Reading) {
	var none C
	for i, a := range of(none) {
		sum, missing := new(big.Int), 0
		for _, c := range contracts {
			if is := of(c)[i].Is; is.Int != nil {
				sum.Add(sum, is.Int)
			} else {
				missing++
			}
		}
		r := system.Money(a.Name, sum)
		if missing > 0 {
			r.Bad = fmt.Sprintf("not reported by %d of %d contracts", missing, len(contracts))
		}
		if i < 2 || missing == 0 || missing < len(contracts) {
			out = append(out, r)
		}
	}
	return out
}
