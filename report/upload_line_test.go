package report

import (
	"math"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// A system that accepts objects before they cross the link does not beat the link.
func TestAcceptedBytesNeedNotHaveCrossed(t *testing.T) {
	load := func(settled bool, accepted, durable float64) *LoadTest {
		const n, size = 100, 1 << 20
		l := &LoadTest{shelf: &shelf{}, link: map[string]Num{"bandwidth_line": 1 << 20}}
		for i := range n {
			at, full := accepted*float64(i+1), durable*float64(i+1)
			l.shelf.accepted = append(l.shelf.accepted, stored{at: at, took: accepted, size: size})
			if settled {
				l.shelf.durable = append(l.shelf.durable, stored{at: full, took: full, size: size})
			}
		}
		l.shelf.settled, l.FileRate = settled, Estimate{Value: Num(size / accepted)}
		return l
	}
	for _, c := range []struct {
		settled                 bool
		accepted, durable, want float64
	}{
		{true, 0.1, 2, 0.5},
		{true, 2, 2, 0.5},
		{false, 2, 0, 0.5},
		{false, 0.1, 0, math.NaN()},
	} {
		got := float64(load(c.settled, c.accepted, c.durable).fileLineShare())
		if !(math.Abs(got-c.want) < 0.02) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %g of the line", c, got)
		}
	}
}

// A load test whose bytes arrive faster than its link carries them is an alarm; one
// that only accepts them faster is told that it does.
func TestLoadTestBeyondItsLine(t *testing.T) {
	const size, n = 40 << 20, 100 // a sector of each of ten servers: no padding
	run := func(line, lag float64, change func(*loadTruth)) *Report {
		s := plainLoad(7)
		s.size, s.objects, s.hours, s.every = size, n, 2, 20
		s.link = map[string]float64{"bandwidth_line": line}
		s.job = func(_ int, j *record.Job) { j.Durable = j.Accepted + dur(lag) }
		if change != nil {
			change(&s)
		}
		return s.report(t)
	}
	rate := 3 * float64(n) * size / 3600 // of the link, 30 pieces for 10
	for _, c := range []struct {
		name   string
		rule   string // empty: neither
		report *Report
	}{
		{"within the line", "", run(2*rate, 5, nil)},
		{"at full redundancy twice as fast as the link", "beyond-line", run(rate/2, 5, nil)},
		{"full redundancy comes at the link's rate", "", run(rate/2, 4000, lagging)},
		{"accepted faster than the link", "accepted-beyond-line", run(0.6*rate, 0, func(s *loadTruth) { accepting(s); lagging(s) })},
		{"accepted within the line", "", run(2*rate, 0, accepting)},
		{"within the line, but for the padding that went over the link", "beyond-line", run(rate/2, 5, func(s *loadTruth) { s.size = 1 << 19 })},
	} {
		for _, rule := range []string{"beyond-line", "accepted-beyond-line"} {
			if f := c.report.found(rule); (f != nil) != (rule == c.rule) {
				t.Errorf("%s: %s: %+v; %v of the line", c.name, rule, f, c.report.Loads[0].fileLineShare())
			}
		}
	}
}

// lagging has what was accepted come to the servers half an hour later.
func lagging(s *loadTruth) { s.lag = 1750 }

// accepting has no object come to its full redundancy.
func accepting(s *loadTruth) {
	s.job = func(_ int, j *record.Job) { j.Durable, j.State = 0, record.JobAccepted }
}

// What polls see on the servers has arrived, whatever its system says.
func TestArrivedBeyondTheLine(t *testing.T) {
	for told, beyond := range map[float64]bool{3 * 100 * 10 << 20: true, 0.2 * 100 * 10 << 20: false} {
		w := &watch{start: []float64{1, 210}, end: []float64{2, 211}, values: map[string][]float64{system.ReadAbsolute: {0, told}}}
		l := acceptedLoad(100, 10<<20, w)
		l.Bytes, l.link = 100*10<<20, map[string]Num{"bandwidth_line": 4 << 20}
		if share := l.arrivedShare(); (share > 1.07) != beyond {
			t.Errorf("%g bytes came: %v of the line", told, share)
		}
	}
	// What a client's own code makes crossed the link, too.
	for known, want := range map[bool]float64{true: 3000.0 / 4 / 111.5, false: 1000.0 / 4 / 111.5} {
		w := &watch{start: []float64{1, 210}, end: []float64{2, 211}, values: map[string][]float64{system.ReadAbsolute: {0, 3000 << 20}}}
		l := acceptedLoad(100, 10<<20, w)
		l.Bytes, l.link = 100*10<<20, map[string]Num{"bandwidth_line": 4 << 20}
		if !known {
			l.coding = coding{}
		}
		if share := float64(l.arrivedShare()); math.Abs(share/want-1) > 1e-9 {
			t.Errorf("coding known %v: %v of the line, want %v", known, share, want)
		}
	}
	late := &watch{start: []float64{1, 1000}, end: []float64{2, 1001}, values: map[string][]float64{system.ReadAbsolute: {0, 3e9}}}
	l := acceptedLoad(100, 10<<20, late)
	l.Bytes, l.link = 100*10<<20, map[string]Num{"bandwidth_line": 4 << 20}
	if share := l.arrivedShare(); share > 1 {
		t.Errorf("what a late poll sees may have come at any time before it: %v of the line", share)
	}
}
