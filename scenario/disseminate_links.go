package scenario

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// swarmLinks are the links of a trial: what the cell says, slow leechers, and the
// faults that are under way, composed. Of two faults that change the rate of one
// node, that which began later counts; nodes that are cut away at the same time,
// by whichever fault, are on one side together.
type swarmLinks struct {
	network  Network // nil: the nodes have no links of their own
	slow     []int
	slowly   Rates
	changing sync.Mutex // one change at a time
	faults   []*swarmFault
	cut      atomic.Pointer[[]int] // places of the nodes that are cut away
}

func newSwarmLinks(network Network, d *experiment.ResolvedDisseminate, slow []int) *swarmLinks {
	return &swarmLinks{network: network, slow: slow, slowly: Rates{Up: float64(d.SlowUp), Down: float64(d.SlowDown)}}
}

func (l *swarmLinks) emulated() (bool, string) {
	if l.network == nil {
		return false, "the nodes share one network"
	}
	return l.network.Emulated()
}

// linkLimit is what a change of all links may take.
const linkLimit = time.Minute

// begin and end put a fault into force and take it back.
func (l *swarmLinks) begin(ctx context.Context, f *swarmFault) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.faults = append(l.faults, f)
	return l.change(ctx)
}

func (l *swarmLinks) end(ctx context.Context, f *swarmFault) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.faults = slices.DeleteFunc(l.faults, func(g *swarmFault) bool { return g == f })
	return l.change(ctx)
}

// apply makes the links what they are when no fault is under way.
func (l *swarmLinks) apply(ctx context.Context) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.faults = nil
	if len(l.slow) == 0 || l.slowly == (Rates{}) {
		return nil
	}
	return l.change(ctx)
}

// apart are the nodes that are cut away now, by place.
func (l *swarmLinks) apart() []int {
	if p := l.cut.Load(); p != nil {
		return *p
	}
	return nil
}

func (l *swarmLinks) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	c := NetworkChange{Rates: map[int]Rates{}}
	if l.slowly != (Rates{}) {
		for _, i := range l.slow {
			c.Rates[i] = l.slowly
		}
	}
	for _, f := range l.faults {
		for _, m := range f.victims {
			if f.Kind == experiment.FaultRate {
				c.Rates[m.place] = Rates{Up: float64(f.Rate), Down: float64(f.Rate)}
			} else if !slices.Contains(c.Apart, m.place) {
				c.Apart = append(c.Apart, m.place)
			}
		}
	}
	slices.Sort(c.Apart)
	if err := l.network.Change(ctx, c); err != nil {
		return err
	}
	l.cut.Store(&c.Apart)
	return nil
}

// restore takes back everything that the trial has changed.
func (l *swarmLinks) restore(ctx context.Context) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if len(l.faults) == 0 && (len(l.slow) == 0 || l.slowly == (Rates{})) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	l.faults = nil
	return l.network.Change(ctx, NetworkChange{})
}

// traffic is what has crossed the nodes' links; nil: it cannot be told.
func (l *swarmLinks) traffic(ctx context.Context) []Traffic {
	if l.network == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, linkLimit)
	defer cancel()
	return l.network.Traffic(ctx)
}
