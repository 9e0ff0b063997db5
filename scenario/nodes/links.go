package nodes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Links are the links of a trial: those of the cell, combined with rates of single nodes and
// with active faults. If two faults change the rate of a node, the later one wins. All nodes
// that are cut off at the same time, by whichever fault, are on one side together.
type Links struct {
	network  scenario.Network       // nil: the nodes have no links of their own
	Rates    map[int]scenario.Rates // rates of nodes that differ from the cell's, by place
	changing sync.Mutex             // serializes changes
	faults   []*Fault               // active faults
}

func (l *Links) emulated() (bool, string) {
	if l.network == nil {
		return false, "the nodes share one network"
	}
	return l.network.Emulated()
}

// linkLimit limits a change of all links.
const linkLimit = time.Minute

// set applies or reverts a fault.
func (l *Links) set(ctx context.Context, f *Fault, on bool) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.faults = slices.DeleteFunc(l.faults, func(g *Fault) bool { return g == f })
	if on {
		l.faults = append(l.faults, f)
	}
	return l.change(ctx)
}

// Apply applies Rates.
func (l *Links) Apply(ctx context.Context) error {
	if len(l.Rates) == 0 {
		return nil
	}
	return l.change(ctx)
}

// change applies Rates and the active faults.
func (l *Links) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	c := scenario.NetworkChange{Rates: maps.Clone(l.Rates)}
	for _, f := range l.faults {
		for _, n := range f.Victims {
			if f.Kind() == experiment.FaultRate {
				c.Rates[n.Place] = scenario.Rates{Up: float64(f.Rate), Down: float64(f.Rate)}
			} else {
				c.Apart = append(c.Apart, n.Place)
			}
		}
	}
	slices.Sort(c.Apart)
	c.Apart = slices.Compact(c.Apart)
	return l.network.Change(ctx, c)
}

// traffic returns the traffic of the nodes' links, or nil if it is unknown.
func (l *Links) traffic(ctx context.Context) []scenario.Traffic {
	if l.network == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	return l.network.Traffic(ctx)
}

// MeasuredAgainst returns the measured rate as a multiple of the configured one (1 if not measured),
// and the measured round trip (asked if not measured).
func MeasuredAgainst(c record.LinkCheck, asked float64) (factor, rtt float64) {
	factor, rtt = 1, asked
	if c.WantRate > 0 && c.Rate > 0 {
		factor = c.Rate / c.WantRate
	}
	if c.RTT > 0 {
		rtt = c.RTT
	}
	return factor, rtt
}
