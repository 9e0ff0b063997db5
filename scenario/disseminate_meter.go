package scenario

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
)

// details are the numbers of all nodes of the deployment, in their order; −1: not
// known.
func (t *swarmTrial) details() []record.Detail {
	names := t.names()
	of := func(kind string, of func(m *member) float64) []record.Detail {
		return details(kind, names, func(place int) float64 {
			if place < len(t.members) {
				return of(t.members[place])
			}
			return math.NaN()
		})
	}
	return slices.Concat(
		of(record.DetailSeeder, func(m *member) float64 {
			if m.leecher == nil {
				return 1
			}
			return 0
		}),
		of(record.DetailLinkReceived, func(m *member) float64 { return t.crossed(m.place).Received }),
		of(record.DetailLinkSent, func(m *member) float64 { return t.crossed(m.place).Sent }))
}
