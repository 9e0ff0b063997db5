package main

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

const (
	rateOver  = 5 * time.Minute // a rate is that of the last minutes
	lineEvery = time.Minute     // plain lines and JSON objects of a trial that goes on, at most
)

// far is how far a trial is that goes on for long: its latest state, and what
// its rates come from.
type far struct {
	state   scenario.State
	points  []scenario.State // of the last rateOver, ascending, some seconds apart
	latency time.Duration    // of the calls of the latest poll, median
	said    time.Time        // the latest plain line
}

// add takes a state; it keeps a bounded number of them.
func (f *far) add(s scenario.State) {
	if n := len(f.points); n > 0 && (s.At < f.points[n-1].At || s.Objects != f.state.Objects) {
		f.points = nil // another trial
	}
	f.state = s
	if n := len(f.points); n == 0 || s.At-f.points[n-1].At >= rateOver/60 {
		f.points = append(f.points, s)
	}
	for len(f.points) > 2 && s.At-f.points[1].At >= rateOver {
		f.points = f.points[1:]
	}
}

// rates are objects and bytes accepted per second over the last minutes; false
// when there is nothing to tell them from.
func (f *far) rates() (objects, bytes float64, ok bool) {
	if len(f.points) == 0 {
		return 0, 0, false
	}
	first := f.points[0]
	seconds := (f.state.At - first.At).Seconds()
	if seconds < 1 {
		return 0, 0, false
	}
	return float64(f.state.Accepted-first.Accepted) / seconds, float64(f.state.Bytes-first.Bytes) / seconds, true
}

// left is the time until all objects are accepted at the present rate.
func (f *far) left() string {
	s := f.state
	rest := s.Objects - s.Accepted - s.Failed - s.Refused
	objects, _, ok := f.rates()
	switch {
	case s.Objects == 0:
		return ""
	case rest <= 0:
		return "all are stored"
	case !ok || objects <= 0:
		return ""
	}
	return experiment.RoughDuration(float64(rest)/objects) + " left"
}

// polled takes what the calls of a poll took.
func (f *far) polled(p record.Poll) {
	var took []time.Duration
	for _, c := range p.Calls {
		if c.Error == "" {
			took = append(took, c.End-c.Start)
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		f.latency = took[len(took)/2]
	}
}

// String is one line.
func (f *far) String() string {
	s := f.state
	var parts []string
	if s.Objects > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d objects accepted", s.Accepted, s.Objects))
		if s.Durable > 0 {
			parts = append(parts, fmt.Sprintf("%d durable", s.Durable))
		}
		if n := s.Failed + s.Refused; n > 0 {
			parts = append(parts, fmt.Sprintf("%d given up", n))
		}
		parts = append(parts, experiment.RoughBytes(float64(s.Bytes)))
		if _, bytes, ok := f.rates(); ok {
			parts = append(parts, experiment.RoughBytes(bytes)+"/s")
		}
	} else {
		parts = append(parts, "for "+experiment.RoughDuration(s.At.Seconds()))
	}
	if s.Spent != nil && s.Spent.Sign() != 0 {
		parts = append(parts, "spent "+coins(s.Spent, s.Decimals))
	}
	if f.latency > 0 {
		parts = append(parts, "API "+f.latency.Round(100*time.Microsecond).String())
	}
	if left := f.left(); left != "" {
		parts = append(parts, left)
	}
	return strings.Join(parts, " · ")
}

// coins is an amount of the smallest unit in the currency, for people.
func coins(amount *big.Int, decimals int) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	return new(big.Rat).SetFrac(amount, unit).FloatString(2)
}

// State implements engine.Progress.
func (p *progress) State(s scenario.State, cell experiment.Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far.add(s)
	if p.ui.Terminal() && !p.ui.JSON {
		p.ui.Progress(p.current + "  " + p.far.String())
		return
	}
	if now := time.Now(); now.Sub(p.far.said) >= lineEvery {
		p.far.said = now
		p.sayFar(cell)
	}
}

func (p *progress) sayFar(cell experiment.Cell) {
	if !p.ui.JSON {
		p.ui.Say("%s: %s", p.current, p.far.String())
		return
	}
	s := p.far.state
	objects, bytes, _ := p.far.rates()
	line := map[string]any{
		"type": "state", "cell": cell.ID, "seconds": s.At.Seconds(), "objects": s.Objects, "accepted": s.Accepted, "durable": s.Durable,
		"failed": s.Failed, "refused": s.Refused, "bytes": s.Bytes, "objects_per_second": objects, "bytes_per_second": bytes,
	}
	if s.Spent != nil {
		line["spent"], line["decimals"] = s.Spent.String(), s.Decimals
	}
	if p.far.latency > 0 {
		line["api_seconds"] = p.far.latency.Seconds()
	}
	p.ui.Emit(line)
}

// Poll implements engine.Progress.
func (p *progress) Poll(poll record.Poll) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far.polled(poll)
}

// endFar is the last that is said of a trial that went on for long.
func (p *progress) endFar(t record.Trial, cell experiment.Cell) {
	if p.far.state.At == 0 {
		return
	}
	ended := ""
	for _, n := range t.Notes {
		if why, ok := strings.CutPrefix(n, record.NoteEnded); ok {
			ended = " · ended: " + why
		}
	}
	s := p.far.state
	if !p.ui.JSON && s.Objects > 0 {
		durable := ""
		if s.Settles {
			durable = fmt.Sprintf(" %d durable,", s.Durable)
		}
		p.ui.Say("%s: %d objects: %d accepted,%s %d failed, %d refused; %s in %s%s", p.current,
			s.Objects, s.Accepted, durable, s.Failed, s.Refused,
			experiment.RoughBytes(float64(s.Bytes)), experiment.RoughDuration(s.At.Seconds()), ended)
	} else if !p.ui.JSON && ended != "" {
		p.ui.Say("%s:%s", p.current, strings.TrimPrefix(ended, " ·"))
	}
	p.far = far{}
}
