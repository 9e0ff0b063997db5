package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Burden is how work was shared among parties that could have done equal parts.
type Burden struct {
	Name    string
	Parties string  // "seeders"
	Of      int     // how many
	Busiest Value   // the part of the one that did most, times their number: 1 is even
	Useless float64 // share of them that did nothing, median; NaN: not known
}

// muchUneven is how many times its even part one may do before the work of the
// others is missed.
const muchUneven = 1.5

// Unbalanced says where one did much of the work of all. The measure is the largest
// part over the mean one, the percent imbalance of parallel programs (Pearce and
// others 2012, Quantifying the effectiveness of load balance algorithms): with it
// goes by how much it could be faster if the busiest is what all wait for. An index
// like Gini's hides that.
func Unbalanced(all []Burden) []Finding {
	f := Finding{Rule: "unbalanced", Tone: Neutral, Title: "The work is not shared evenly",
		Text: fmt.Sprintf("One of several that could have done as much did more than %s its even part, in the whole interval, so links of the others were not used. Where the busiest is what all wait for, even parts would be as much faster at most.", words.Show(muchUneven, "×")),
		Try:  "Look at how peers are chosen: who answers first is asked again and again. Limit what is asked of one at a time, or raise how many are asked."}
	for _, b := range all {
		if b.Of < 2 || !b.Busiest.above(muchUneven) {
			continue
		}
		s := fmt.Sprintf("%s: the busiest of %s did %s its even part (n = %d)", b.Name, words.Count(int64(b.Of))+" "+b.Parties, b.Busiest.words("×"), b.Busiest.N)
		if b.Useless > 0 {
			s += fmt.Sprintf("; %s of them did nothing", words.Percent(b.Useless))
		}
		f.Evidence = append(f.Evidence, s)
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}
