package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// A daemon that keeps something of each object is found, a sound one beside it and
// what is no part of the system is not, nor one that was started anew now and then.
func TestLeakOfALoadTest(t *testing.T) {
	s := plainLoad(3)
	s.hours, s.objects = 12, 1000
	s.samples = func(yield func(record.Sample) bool) {
		rng := rand.New(rand.NewPCG(1, 1))
		for at := 0.0; at < s.hours*3600; at += 5 {
			for _, p := range []record.Sample{
				{Process: "siad/renter", Role: "system", PID: 7, RSS: 200e6 + 5e6*at/3600 + 2e6*rng.NormFloat64()},
				{Process: "siad/host", Role: "system", PID: 8, RSS: 90e6 + 2e6*rng.NormFloat64()},
				{Process: "siad/miner", Role: "system", PID: 100 + int(at/7200), RSS: 90e6 + 8e6*rng.NormFloat64()},
				{Process: "load", Role: "generator", PID: 1, RSS: 50e6 + 9e6*at/3600},
			} {
				p.End, p.FDs, p.Threads = dur(at), 40, 9
				if !yield(p) {
					return
				}
			}
		}
	}
	r := s.report(t)
	f := r.found("leak-memory")
	if f == nil || len(f.Evidence) != 1 || !strings.Contains(f.Evidence[0], "siad/renter: resident memory from 21") || !strings.Contains(f.Evidence[0], "kB per 1,000 objects") && !strings.Contains(f.Evidence[0], "MB per 1,000 objects") {
		t.Errorf("%+v", f)
	}
	for _, rule := range []string{"leak-files", "leak-threads"} {
		if f := r.found(rule); f != nil {
			t.Errorf("%+v", f)
		}
	}
	for _, l := range r.lives {
		if n := len(l.Hours); n > 2*samplesOfLife || l.Hours[n-1] < l.Hours[0] {
			t.Errorf("%s: %d samples", l.Name, n)
		}
	}
}

// A page that is looked at again and again while a run goes on does not read all
// samples each time; it says what it leaves out, and the page of the end has it.
func TestSamplesAreNotReadAtAGlance(t *testing.T) {
	for _, c := range []struct {
		glance, going bool
		read          bool
	}{{true, true, false}, {true, false, true}, {false, true, true}, {false, false, true}} {
		s := plainLoad(3)
		s.hours, s.objects, s.going = 3, 200, c.going
		read := 0
		s.samples = func(yield func(record.Sample) bool) {
			for at := 0.0; at < s.hours*3600; at += 60 {
				if read++; !yield(record.Sample{Process: "siad/renter", Role: "system", PID: 7, RSS: 2e8, End: dur(at)}) {
					return
				}
			}
		}
		s.glance = c.glance
		r := s.report(t)
		said := strings.Contains(strings.Join(r.Notes, " "), "does not look for leaks")
		if (read == 180) != c.read || !c.read && read > 0 || said == c.read || (len(r.lives) == 1) != c.read {
			t.Errorf("at a glance %v, going on %v: %d of 180 samples read, said %v, %d lives", c.glance, c.going, read, said, len(r.lives))
		}
	}
}
