package collect

import (
	"math/big"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

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
