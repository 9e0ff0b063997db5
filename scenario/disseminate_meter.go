package scenario

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// details are the facts that operations and marks do not tell: those of all nodes of
// the deployment, in their order (−1: not known), and of faults that were undone. The
// lock is the caller's.
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
	leechers := func(of func(m *member) float64) func(m *member) float64 {
		return func(m *member) float64 {
			if m.leecher == nil {
				return math.NaN()
			}
			return of(m)
		}
	}
	all := slices.Concat(
		of(record.DetailSeeder, func(m *member) float64 {
			if m.leecher == nil {
				return 1
			}
			return 0
		}),
		of(record.DetailLinkReceived, func(m *member) float64 { return t.crossed(m.place).Received }),
		of(record.DetailLinkSent, func(m *member) float64 { return t.crossed(m.place).Sent }),
		of(record.DetailPayload, leechers(func(m *member) float64 {
			if l := m.leecher; m.life == 0 && l.last.Received > 0 {
				return float64(l.last.Received)
			}
			return math.NaN()
		})),
		of(record.DetailCalled, leechers(func(m *member) float64 {
			if l := m.leecher; l.called > 0 {
				return (l.called - l.released).Seconds()
			}
			return math.NaN()
		})),
		of(record.DetailGap, leechers(func(m *member) float64 { return m.leecher.gap.Seconds() })),
		of(record.DetailOnDisk, leechers(func(m *member) float64 {
			_, disk := t.ops(m)
			return float64(disk.LastByte) / 1e9
		})),
		of(record.DetailDiskOutcome, leechers(func(m *member) float64 {
			_, disk := t.ops(m)
			return float64(disk.Outcome)
		})),
		t.faultDetails())
	if emulated, _ := t.links.emulated(); emulated {
		all = append(all, fact(loadEmulated, 1))
	}
	return append(all, fact(loadStalls, float64(t.stalls)))
}

// faultDetails are how long faults lasted that were undone, and how long the leechers
// that they had held up took to go on.
func (t *swarmTrial) faultDetails() (all []record.Detail) {
	add := func(kind, name string, took time.Duration) {
		all = append(all, record.Detail{Kind: kind, Name: name, Value: took.Seconds()})
	}
	for i, f := range t.faults {
		if f.undone > 0 {
			add(record.DetailOutage, fmt.Sprintf("fault %d", i+1), f.undone-f.start)
		}
	}
	for i, f := range t.faults {
		for _, m := range t.leechers {
			for _, r := range t.affected {
				if r.fault != f || r.leecher != m.leecher || !r.held() {
					continue
				}
				took := -time.Second // it did not
				if r.after > 0 {
					took = r.after
				}
				add(record.DetailRecovery, fmt.Sprintf("fault %d, %s", i+1, m.name), took)
			}
		}
	}
	return all
}
