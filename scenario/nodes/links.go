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

// Links are the links of a trial: what the cell says, rates of single nodes,
// and the faults that are under way, composed. Of two faults that change the rate
// of one node, that which began later counts; nodes that are cut away at the same
// time, by whichever fault, are on one side together.
type Links struct {
	network  scenario.Network       // nil: the nodes have no links of their own
	Rates    map[int]scenario.Rates // of nodes whose links differ from what the cell says, by place
	changing sync.Mutex             // one change at a time
	faults   []*Fault               // under way
}

func (l *Links) emulated() (bool, string) {
	if l.network == nil {
		return false, "the nodes share one network"
	}
	return l.network.Emulated()
}

// linkLimit is what a change of all links may take.
const linkLimit = time.Minute

// set puts a fault into force, or takes it back.
func (l *Links) set(ctx context.Context, f *Fault, on bool) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.faults = slices.DeleteFunc(l.faults, func(g *Fault) bool { return g == f })
	if on {
		l.faults = append(l.faults, f)
	}
	return l.change(ctx)
}

// Apply makes the links what they are when no fault is under way.
func (l *Links) Apply(ctx context.Context) error {
	if len(l.Rates) == 0 {
		return nil
	}
	return l.change(ctx)
}

// change makes the links what they are with the faults under way.
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

// restore takes back everything that the trial has changed.
func (l *Links) restore(ctx context.Context) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if len(l.faults) == 0 && len(l.Rates) == 0 {
		return nil
	}
	l.faults, l.Rates = nil, nil
	return l.change(ctx)
}

// traffic is what has crossed the nodes' links; nil: not known.
func (l *Links) traffic(ctx context.Context) []scenario.Traffic {
	if l.network == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	return l.network.Traffic(ctx)
}

// Correction is what was measured of a rate over what was asked for, and the round
// trip; 1, and the one that was asked for, where it was not.
func Correction(c record.LinkCheck, asked float64) (factor, rtt float64) {
	factor, rtt = 1, asked
	if c.WantRate > 0 && c.Rate > 0 {
		factor = c.Rate / c.WantRate
	}
	if c.RTT > 0 {
		rtt = c.RTT
	}
	return factor, rtt
}
