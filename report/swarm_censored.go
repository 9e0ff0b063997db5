package report

import (
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// swarmTimes are the metrics of a swarm that a trial lacks when its leechers did
// not come to them: the time was longer than what was watched. The speed of such
// leechers was lower than any that was seen.
var swarmTimes = []string{"time_last", "time_median", "time_p25", "time_p75", "disk_median", "disk_last", "first_byte", "speed_median", "speed_p25", "speed_p75"}

// ofSwarm reports whether a metric is one of them.
func ofSwarm(key string) bool { return slices.Contains(swarmTimes, key) }

// unfinishedOperations reports whether a trial has leechers, or a fresh node, that
// did not come to their end.
func unfinishedOperations(t record.Trial) bool {
	for o, n := range t.Outcomes {
		if o != record.OK.String() && n > 0 {
			return true
		}
	}
	return false
}

// side is on which side of all others a value lies that is known only to be
// beyond what was watched.
func side(m record.Metric) float64 {
	if strings.HasPrefix(m.Key, "speed_") || ofSync(m.Key) && m.Better == record.Higher {
		return math.Inf(-1)
	}
	return math.Inf(1)
}
