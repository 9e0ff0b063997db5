package findings

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Stored is what a system keeps for objects of several sizes, stored in one way.
type Stored struct {
	Name string      // system, and how it stores where that varies
	What string      // what is counted: "absolute bytes"
	Lots []stats.Lot // what repeats gave, as medians; or objects that were seen together
	N    int         // values behind them
	// Series: the lots follow one another, and what belongs to one may be counted
	// with the next.
	Series bool
}

// wasteful is the share of what servers keep from which on padding is worth a
// warning.
const wasteful = 0.5

// smallWaste is the share below which padding no longer matters.
const smallWaste = 0.1

// Padding finds the unit that objects are rounded up to, in the bytes that servers
// keep: a thing that no option has to tell.
func Padding(all []Stored) []Finding {
	f := Finding{Rule: "padding", Tone: Neutral, Title: "Objects are rounded up to whole units",
		Text: fmt.Sprintf("What servers keep goes in steps: each object takes a whole number of these units, times the redundancy. Found from sizes and bytes alone; a line through them, or a least size, explains it worse (by Akaike's criterion). Padding, with what is kept beside each object, is less than %s from the size on that is named.", words.Percent(smallWaste)),
		Try:  "Store larger objects, or pack small ones into one before storing them; where the system has an option for its unit, or packs by itself, vary it."}
	for _, s := range all {
		find := stats.Quantum
		if s.Series {
			find = stats.QuantumOfSeries
		}
		q := find(s.Lots)
		if !q.Found {
			continue
		}
		if q.Waste.Lo >= wasteful {
			f.Tone = Warn
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s: units of %s, each byte of which is kept %s%s; %s of what these objects take is neither theirs nor redundancy, less than %s for sure from objects of %s on (%s in %s, %s of which tell; off by %s in the mean, a line by %s)",
			s.Name, s.What, unit(q.Quantum), within(q.Factor, "×"), beside(q),
			within(q.Waste, "%"), words.Percent(smallWaste), words.Show(fromSize(q), "B"),
			words.Plural(int64(q.Sizes), "size", "sizes"), words.Plural(int64(max(s.N, q.Lots)), "value", "values"), words.Count(int64(q.Telling)), words.Percent(q.Misfit), words.Percent(q.Linear)))
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}

// precise is how far apart the ends may be for one value to be told.
const precise = 1.1

// unit names the quantum, with what is not excluded, or that alone.
func unit(i stats.Interval) string {
	ends := fmt.Sprintf("%s to %s", words.Show(i.Lo, "B"), words.Show(i.Hi, "B"))
	switch {
	case i.Hi > precise*i.Lo:
		return ends
	case i.Hi-i.Lo > 0.01*i.Mid:
		return words.Binary(i.Mid) + " (" + ends + ")"
	}
	return words.Binary(i.Mid)
}

// within is a value, or where it is uncertain the ends of it: × or %.
func within(i stats.Interval, unit string) string {
	show := func(x float64) string {
		if unit == "%" {
			return words.Percent(x)
		}
		return words.Show(x, unit)
	}
	if lo, hi := show(i.Lo), show(i.Hi); i.Hi > precise*i.Lo && lo != hi {
		return lo + " to " + hi
	}
	return show(i.Mid)
}

func beside(q stats.QuantumFit) string {
	if q.Beside < 0.005*q.Quantum.Mid {
		return ""
	}
	return fmt.Sprintf(", and %s beside each object", words.Show(q.Beside*q.Factor.Mid, "B"))
}

// fromSize is the size from which on padding is a small share in the worst case: a
// whole unit less one byte, as large as it may be, and the constant.
func fromSize(q stats.QuantumFit) float64 {
	return (1/smallWaste - 1) * (q.Quantum.Hi + q.Beside)
}

// Sized groups values by size into lots of their medians.
func Sized(bySize map[float64][]float64) (lots []stats.Lot, n int) {
	for size, xs := range bySize {
		lots = append(lots, stats.Lot{Sizes: []float64{size}, Takes: stats.Median(xs)})
		n += len(xs)
	}
	slices.SortFunc(lots, func(a, b stats.Lot) int {
		if a.Sizes[0] < b.Sizes[0] {
			return -1
		}
		return 1
	})
	return lots, n
}
