package scenario

import (
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// Definitions reads definitions of metrics, "set|key|name|unit|better|help" a line, by their
// sets, in their order. They are data of ours, and tests read all of them: a line that is
// none is a bug.
func Definitions(text string) map[string][]record.Metric {
	all := map[string][]record.Metric{}
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		all[f[0]] = append(all[f[0]], record.Metric{Key: f[1], Name: f[2], Unit: f[3], Better: record.Better(f[4]),
			Help: f[5]})
	}
	return all
}
