package findings

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// example is what rules make of figures of which one of them speaks, and of figures
// like them of which it does not.
type example struct {
	is, isNot []Finding
	looked    bool // there was something to look at in the second
}

// when asks a rule about both.
func when[T any](look func(T) []Finding, is, isNot T) example {
	v := reflect.ValueOf(isNot)
	looked := !v.IsZero()
	if v.Kind() == reflect.Slice {
		looked = v.Len() > 0
		for i := range v.Len() {
			looked = looked && !v.Index(i).IsZero()
		}
	}
	return example{look(is), look(isNot), looked}
}

// tells is of a rule that is handed only what it speaks of, and says what it is: words
// that are true of the one and not of the other. It is silent where there is nothing.
func tells[T any](look func(T) []Finding, is, other T, words string) example {
	said := func(v T) bool {
		return slices.ContainsFunc(look(v), func(f Finding) bool { return strings.Contains(strings.Join(f.Evidence, "\n"), words) })
	}
	var none T
	return example{look(is), look(none), said(is) && !said(other)}
}

// cases are examples of every rule of this package, by its name.
func cases() map[string]example {
	all := map[string]example{}
	for _, some := range []map[string]example{
		limitCases(), fallCases(), shareCases(), runCases(), swarmCases(), costCases(),
		objectCases(), moneyCases(), pollCases(), growthCases(), unstoredCases(), syncCases(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// Every rule speaks where it should, in its own tones, and is silent where it has
// something to look at that is not what it looks for.
func TestEveryRuleSpeaksWhereItShould(t *testing.T) {
	for name, c := range cases() {
		r, ok := Named(name)
		if !ok {
			t.Errorf("%s has a case, and is no rule", name)
			continue
		}
		f := findingOf(c.is, name)
		switch {
		case f == nil:
			t.Errorf("%s: not found where it is: %+v", name, c.is)
		case f.Title == "" || f.Text == "" && f.Evidence == nil || !slices.Contains(r.Tones, f.Tone):
			t.Errorf("%s says too little, or in a tone that the catalogue has not: %+v", name, f)
		}
		if f := findingOf(c.isNot, name); f != nil || !c.looked {
			t.Errorf("%s: found where it is not, or nothing to look at there, or not told from it: %+v", name, f)
		}
	}
}

func findingOf(all []Finding, rule string) *Finding {
	for i := range all {
		if all[i].Rule == rule {
			return &all[i]
		}
	}
	return nil
}

// limitCases: each limit speaks by a rule of its own, of a cell that is at it and not
// of one that is far from it.
func limitCases() map[string]example {
	say := func(s Shares) []Finding { return SayBounds(Bound([]Shares{s})) }
	near := func(v float64) []float64 { return []float64{v, v * 1.01, v * 0.99, v, v * 1.01, v * 0.99} }
	return map[string]example{
		"link-bound":           when(say, Shares{Line: near(0.95)}, Shares{Line: near(0.78)}),
		"one-link-full":        when(say, Shares{Line: near(0.4), Link: near(0.95)}, Shares{Line: near(0.4), Link: near(0.5)}),
		"rtt-bound":            when(say, Shares{RoundTrips: near(0.8)}, Shares{RoundTrips: near(0.2)}),
		"cpu-bound":            when(say, Shares{Busiest: near(1)}, Shares{Busiest: near(0.4)}),
		"machine-busy":         when(say, Shares{Machine: near(0.95)}, Shares{Machine: near(0.5)}),
		"compute-bound":        when(say, Shares{Work: near(0.95)}, Shares{Work: near(0.5)}),
		"disk-bound":           when(say, Shares{Storage: near(0.8)}, Shares{Storage: near(0.2)}),
		"waiting":              when(say, Shares{Line: near(0.4), Busiest: near(0.2)}, Shares{Line: near(0.4), Busiest: near(1)}),
		"beyond-line":          when(Beyond, []Lined{{Shares: []float64{0.9, 1.2}, Tolerance: 0.05}}, []Lined{{Shares: []float64{0.9, 1.06}, Tolerance: 0.05}}),
		"accepted-beyond-line": when(AcceptedBeyond, []Lined{{Shares: []float64{1.2}, Tolerance: 0.05}}, []Lined{{Shares: []float64{1.06}, Tolerance: 0.05}}),
	}
}
