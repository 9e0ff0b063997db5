package collect

import (
	"math"
	"math/big"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// TestRate checks that growth is attributed to the time in which something was stored, however far
// apart the polls are.
func TestRate(t *testing.T) {
	at := func(start, end, value float64) Reported { return Reported{start, end, value} }
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name          string
		reported      []Reported
		from, to      float64
		value, lo, hi float64 // value NaN: not determined; no bounds: no result
	}{
		{"a poll soon after a short test", []Reported{at(0, 1, 5), at(13, 13.5, 305)}, 10, 13, 100, 300 / 3.5, 100},
		{"that of a minute later cannot tell when it came", []Reported{at(0, 1, 5), at(60, 61, 305)}, 10, 13, nan,
			300. / 51, 100},
		{"nor can still later ones, which see nothing more", []Reported{at(0, 1, 0), at(60, 61, 300),
			at(600, 601, 300)}, 10, 13, nan, 300. / 51, 100},
		{"all but little was seen within", []Reported{at(0, 1, 0), at(12, 13, 290), at(60, 61, 300)}, 10, 13, 100,
			290. / 3, 100},
		{"accepted at once, and sent on for a minute", []Reported{at(0, 1, 0), at(12, 13, 50), at(60, 61, 600)}, 10,
			13, nan, 50. / 3, 200},
		{"earlier ones see nothing", []Reported{at(0, 1, 7), at(5, 6, 7), at(13, 13.5, 307)}, 10, 13, 100, 300 / 3.5,
			100},
		{"polls beside it bound it from below", []Reported{at(0, 1, 0), at(20, 21, 100), at(80, 81, 700),
			at(120, 121, 900)}, 10, 100, 10, 900. / 111, 10},
		{"no poll after: up to the last one", []Reported{at(0, 1, 0), at(59, 61, 500)}, 10, 100, 10, 500. / 51,
			500. / 49},
		{"no poll before: from the first one", []Reported{at(19, 21, 100), at(105, 106, 900)}, 10, 100, 10, 800. / 87,
			800. / 79},
		{"all of the polls", []Reported{at(0, 2, 0), at(50, 51, 3), at(100, 102, 1000)}, -inf, inf, 10, 1000. / 102,
			1000. / 98},
		{"it fell", []Reported{at(0, 1, 500), at(13, 13.5, 200)}, 10, 13, -100, -100, -300 / 3.5},
		{"nothing came", []Reported{at(0, 1, 500), at(60, 61, 500)}, 10, 13, 0, 0, 0},
		{"one poll", []Reported{at(0, 1, 5)}, 10, 13, nan, 0, 0},
		{"no time", []Reported{at(0, 1, 5), at(60, 61, 305)}, 10, 10, nan, 0, 0},
		{"all polls after it", []Reported{at(60, 61, 5), at(70, 71, 305)}, 10, 13, nan, 0, 0},
	} {
		value, lo, hi := Rate(c.reported, c.from, c.to)
		ok := !math.IsNaN(lo)
		if ok != (c.lo != 0 || c.hi != 0 || c.value == 0) {
			t.Errorf("%s: ok is %v", c.name, ok)
		}
		if math.IsNaN(c.value) != math.IsNaN(value) || ok &&
			(math.Abs(value-c.value) > 1e-9 || math.Abs(lo-c.lo) > 1e-9 || math.Abs(hi-c.hi) > 1e-9) {
			t.Errorf("%s: %v, from %v to %v; want %v, from %v to %v", c.name, value, lo, hi, c.value, c.lo, c.hi)
		}
	}
}

// coins returns a reading of n coins with 24 decimals.
func coins(name string, n int64) system.Reading {
	return system.Money(name, new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)))
}

func sc(name string, n int64) record.Reading { return recorded(coins(name, n)) }

func TestUsed(t *testing.T) {
	contracts := func(total, unspent int64) []record.Reading {
		return []record.Reading{sc(system.ReadSpent, total), sc(system.ReadUnspent, unspent)}
	}
	bad := func(r record.Reading) record.Reading {
		return record.Reading{Name: r.Name, Bad: "not told by 1 of 2 contracts"}
	}
	fees := system.ReadSpentPrefix + "fees"
	for _, c := range []struct {
		name  string
		polls [][]record.Reading
		want  float64 // −1: unknown
	}{
		{"contracts that exist are used up", [][]record.Reading{contracts(3600, 3000), contracts(3600, 1000),
			contracts(3600, 3)}, 2997},
		{"money put aside is not used", [][]record.Reading{contracts(0, 0), contracts(3600, 3000)}, 600},
		{"renewed contracts leave the list, and stay paid", [][]record.Reading{contracts(3600, 3000),
			contracts(3600, 100), contracts(1000, 990), contracts(1000, 890)}, 2900 + 100},
		{"what ended contracts had used is told", [][]record.Reading{
			append(contracts(3600, 3000), sc(system.ReadEnded, 0), sc(fees, 600), sc(system.ReadEndedPrefix+"fees", 0)),
			append(contracts(1000, 990), sc(system.ReadEnded, 3500), sc(fees, 10),
				sc(system.ReadEndedPrefix+"fees", 600)),
		}, 10 + 3500 - 600},
		{"a daemon that has not read its contracts yet", [][]record.Reading{contracts(3600, 3000),
			contracts(3600, 100), contracts(0, 0), contracts(3600, 90)}, 2910},
		{"half an answer is none", [][]record.Reading{contracts(3600, 3000),
			{sc(system.ReadSpent, 3600), bad(sc(system.ReadUnspent, 0))}, contracts(3600, 2990)}, 10},
		{"purposes do not count", [][]record.Reading{{sc(fees, 5)}, {sc(fees, 6)}}, -1},
		{"a total beside purposes", [][]record.Reading{append(contracts(100, 90), sc(fees, 10)),
			append(contracts(100, 80), sc(fees, 10))}, 10},
		{"no contract", [][]record.Reading{contracts(0, 0), contracts(0, 0)}, 0},
		{"no money", [][]record.Reading{{{Name: system.ReadFiles, Value: 3}}}, -1},
	} {
		var u Used
		for _, p := range c.polls {
			u.Add(p)
		}
		got := -1.0
		if amount := u.Sum; amount != nil {
			got = system.Money("", amount).Value
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
