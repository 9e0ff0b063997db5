package sia

import (
	"fmt"
	"math"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

// Number is a reading.
func Number(name string, value float64) system.Reading {
	return system.Reading{Name: name, Value: value}
}

// Flag is a reading of 1 or 0.
func Flag(name string, is bool) system.Reading {
	if is {
		return Number(name, 1)
	}
	return Number(name, 0)
}

// Amount is one of money, by the name of its reading.
type Amount struct {
	Name string
	Is   Hastings
}

// Money leaves out what the daemon did not report.
func Money(all ...Amount) (out []system.Reading) {
	for _, a := range all {
		if a.Is.Int != nil {
			out = append(out, system.Money(a.Name, a.Is.Int, Decimals))
		}
	}
	return out
}

// Bytes is a number of bytes that may be absurd: the daemons count in uint64, and
// their counts have been seen to underflow. One bad file among thousands is to spoil
// its own sum, not the whole answer.
type Bytes struct {
	N   int64
	Bad string // the text that is there instead
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	*b = Bytes{}
	if string(text) == "null" {
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > math.MaxInt64 {
		b.Bad = fmt.Sprintf("%.40s", text)
		return nil
	}
	b.N = int64(n)
	return nil
}

// ByteSum is a sum of numbers of bytes.
type ByteSum struct {
	sum float64
	bad string
}

// Add adds a share, from 0 to 1, of the bytes of something.
func (s *ByteSum) Add(b Bytes, share float64, of string) {
	switch {
	case s.bad != "":
	case b.Bad != "":
		s.bad = fmt.Sprintf("%s is no number of bytes (of %.80s)", b.Bad, of)
	case share < 0 || math.IsNaN(share):
		s.bad = fmt.Sprintf("%g is no share of %d bytes (of %.80s)", share, b.N, of)
	}
	s.sum += math.Floor(float64(b.N) * min(share, 1))
}

// Reading is bad when one of the numbers was.
func (s *ByteSum) Reading(name string) system.Reading {
	return system.Reading{Name: name, Value: s.sum, Bad: s.bad}
}
