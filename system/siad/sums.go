package siad

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// figure is a number of bytes that may be absurd: one bad file among thousands
// is to spoil its own sum, not the whole answer.
type figure struct {
	n   int64
	bad string // the text there instead
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *figure) UnmarshalJSON(text []byte) error {
	*f = figure{}
	var s size
	if err := s.UnmarshalJSON(text); err != nil {
		f.bad = fmt.Sprintf("%.40s", text)
		return nil
	}
	f.n = int64(s)
	return nil
}

// monitoredFile is what a poll looks at in a file.
type monitoredFile struct {
	SiaPath       string   `json:"siapath"`
	FileSize      figure   `json:"filesize"`
	UploadedBytes figure   `json:"uploadedbytes"`
	Progress      float64  `json:"uploadprogress"` // percent; it never falls, not even when hosts are lost
	Redundancy    float64  `json:"redundancy"`
	Health        *float64 `json:"health"` // 0: all pieces are there; releases before 1.4 do not report it
}

// count is a sum of bytes.
type count struct {
	sum int64
	bad string
}

func (c *count) add(f figure, of string) {
	switch {
	case f.bad != "" && c.bad == "":
		c.bad = fmt.Sprintf("%s is no number of bytes (of %.80s)", f.bad, of)
	case f.n > math.MaxInt64-c.sum:
		c.bad = "the sum is more than 2^63 bytes"
	default:
		c.sum += f.n
	}
}

func (c *count) reading(name string) system.Reading {
	return system.Reading{Name: name, Value: float64(c.sum), Bad: c.bad}
}

// share is the sum of the parts of files that are stored.
type share struct {
	sum float64
	bad string
}

func (s *share) add(f figure, part float64, of string) {
	if (f.bad != "" || part < 0 || math.IsNaN(part)) && s.bad == "" {
		s.bad = fmt.Sprintf("%g of %d%s bytes stored (of %.80s)", part, f.n, f.bad, of)
	}
	s.sum += math.Floor(float64(f.n) * min(part, 1))
}

func (s *share) reading(name string) system.Reading {
	return system.Reading{Name: name, Value: s.sum, Bad: s.bad}
}

// amounts is a sum of money, exact.
type amounts struct {
	sum  big.Int
	told int
}

func (a *amounts) add(all ...sia.Hastings) {
	for i, h := range all {
		if h.Int != nil {
			a.sum.Add(&a.sum, h.Int)
			if i == 0 {
				a.told++
			}
		}
	}
}

// reading is the sum over so many contracts: when one of them does not report
// its part, there is no sum.
func (a *amounts) reading(name string, contracts int) system.Reading {
	r := system.Money(name, new(big.Int).Set(&a.sum), sia.Decimals)
	if a.told < contracts {
		r.Bad = "not told by " + strconv.Itoa(contracts-a.told) + " of " + strconv.Itoa(contracts) + " contracts"
	}
	return r
}

// spread is of the redundancies of files.
type spread struct {
	n              int
	sum, low, high float64
}

func (s *spread) add(v float64) {
	if s.n == 0 {
		s.low, s.high = v, v
	}
	s.n++
	s.sum += v
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// readings are none while no file is whole.
func (s *spread) readings() []system.Reading {
	if s.n == 0 {
		return nil
	}
	return []system.Reading{
		number(system.ReadRedundancyMean, s.sum/float64(s.n)),
		number(system.ReadRedundancyMin, s.low), number(system.ReadRedundancyMax, s.high),
	}
}

// current are the contracts that are not over, each once.
func (a contractsAnswer) current() []contract {
	seen := map[string]bool{}
	var out []contract
	for _, list := range [][]contract{a.Active, a.Passive, a.Inactive, a.All} {
		for _, c := range list {
			if c.ID != "" && seen[c.ID] {
				continue
			}
			seen[c.ID] = true
			out = append(out, c)
		}
	}
	return out
}

// ended are the contracts that are over, or of no use any more, each once; false:
// the release does not report them.
func (a contractsAnswer) ended() (out []contract, told bool) {
	seen := map[string]bool{}
	for _, c := range append(a.current(), a.Refreshed...) {
		seen[c.ID] = true
	}
	for _, list := range [][]contract{a.Disabled, a.Expired.all, a.ExpiredRefreshed} {
		for _, c := range list {
			if c.ID != "" && seen[c.ID] {
				continue
			}
			seen[c.ID] = true
			out = append(out, c)
		}
	}
	return out, a.Expired.told
}
