package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// seldom says of a percentile in how many valid trials of a cell too few operations
// succeeded to tell it: more trials of the same kind do not. Empty: in none.
func (r *Report) seldom(c *Cell, m record.Metric) string {
	valid, without, most := 0, 0, int64(0)
	for _, t := range r.Trials {
		if t.Info != c || !t.Valid() {
			continue
		}
		valid++
		if !Supported(m.Key, t.Trial) {
			without, most = without+1, max(most, t.Outcomes[record.OK.String()])
		}
	}
	if without == 0 {
		return ""
	}
	q, err := strconv.ParseFloat("0."+m.Key[strings.LastIndex(m.Key, "_p")+2:], 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; in %d of %s too few operations succeeded for this percentile (it needs %d, these have at most %d): more operations in a trial tell it, more repetitions do not",
		without, plural(int64(valid), "valid trial", "valid trials"), stats.PercentileN(q), most)
}
