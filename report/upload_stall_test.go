package report

import (
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// stallsOf are the stalls of a load test, without the rest of its report.
func stallsOf(t *testing.T, s loadTruth) []Stall {
	t.Helper()
	// Five at a time: an object begins when the fifth before it is over, and anew
	// after a session of ours.
	at, after := s.times(), []float64{s.downtime[1] * 3600}
	if s.design {
		phases, _, _ := s.designed()
		for _, p := range phases {
			after = append(after, p.from, p.to)
		}
	}
	s.job = func(i int, j *record.Job) {
		began := at[i] - 300
		if i >= 5 {
			began = at[i-5]
		}
		for _, x := range after {
			if x < at[i] {
				began = max(began, x)
			}
		}
		j.Began = dur(began)
	}
	in := &input{polls: streams(s), jobs: func(int64) iter.Seq2[record.Job, error] { return with(s.jobs()) }, events: s.events(1), latest: s.latest}
	seen, err := in.watched(1)
	must(t, err)
	kept, err := in.shelved(1, 7200, seen.end[len(seen.end)-1])
	must(t, err)
	l := &LoadTest{watch: seen, shelf: kept, info: &Cell{plan: s.plan(t).Cells[0]}, Polls: Polls{N: len(seen.start)}}
	must(t, l.sessions(in, &Trial{Trial: record.Trial{ID: 1, Epoch: loadBegun}}))
	l.stalled()
	return l.Stalls
}

// drawn is what chance an object has: the same each time that it is asked for.
func drawn(seed uint64, share float64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, math.Float64bits(share)))
}

// A stall is found where it is, however objects come otherwise.
func TestStallIsFoundForManySeeds(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 55))
		s := plainLoad(seed)
		s.hours, s.objects, s.failing = 30, 500+rng.IntN(1500), 0.02*rng.Float64()
		from := 4 + 10*rng.Float64()
		s.stall = [2]float64{from, from + 2 + 4*rng.Float64()}
		s.downtime, s.paused = [2]float64{22, 24}, seed%2 == 0
		s.rate = func(share float64) float64 { return math.Exp(0.7 * drawn(seed, share).NormFloat64()) }
		all := stallsOf(t, s)
		if len(all) != 1 {
			t.Errorf("seed %d: nothing was stored from %v h: %+v", seed, s.stall, all)
			continue
		}
		// Before and after it comes what would have been a pause anyway.
		if x := all[0]; math.Abs(float64(x.From)-s.stall[0]*3600) > 1200 || math.Abs(float64(x.To)-s.stall[1]*3600) > 1200 || x.Objects != 5 {
			t.Errorf("seed %d: nothing was stored from %v h, found %+v", seed, s.stall, x)
		}
	}
}

// What is no stall is not called one.
func TestNoStallIsFoundWhereThereIsNone(t *testing.T) {
	n := uint64(12)
	if testing.Short() {
		n = 3
	}
	for name, change := range map[string]func(s *loadTruth){
		"pauses of any length": func(s *loadTruth) {
			s.rate = func(share float64) float64 { return 1 / (drawn(s.seed, share).ExpFloat64() + 1e-6) }
		},
		"pauses far apart": func(s *loadTruth) {
			s.rate = func(share float64) float64 { return math.Exp(drawn(s.seed, share).NormFloat64()) }
		},
		"slower and slower": func(s *loadTruth) {
			s.rate = func(share float64) float64 { return math.Exp(-6 * share) }
		},
		"a session paused": func(s *loadTruth) { s.downtime, s.paused = [2]float64{8, 20}, true },
		"a session killed": func(s *loadTruth) { s.downtime = [2]float64{8, 20} },
		"few objects":      func(s *loadTruth) { s.objects = 30 },
		"polls that fail":  func(s *loadTruth) { s.failing = 0.3 },
		"a design":         func(s *loadTruth) { s.design = true },
	} {
		for seed := range n {
			s := plainLoad(seed)
			s.hours, s.objects = 30, 1500
			change(&s)
			if all := stallsOf(t, s); len(all) > 0 {
				t.Errorf("%s, seed %d: %+v", name, seed, all)
			}
		}
	}
}

// A large object that takes as long as large objects do is no stall, where what
// servers hold is not told until it is there.
func TestLargeObjectsAreNoStall(t *testing.T) {
	kept, at := &shelf{}, 0.0
	rng := rand.New(rand.NewPCG(1, 58))
	for i := range 2000 {
		size := int64(1 << 20)
		if i%200 == 150 {
			size = int64(4+rng.IntN(4)) << 30 // a film among photographs
		}
		took := float64(size) / 5e6 * math.Exp(0.1*rng.NormFloat64())
		kept.accepted = append(kept.accepted, stored{at: at + took, took: took, size: size})
		at += took
	}
	w := newWatch()
	for t := 0.0; t < at; t += 60 {
		p := record.Poll{Start: dur(t), End: dur(t + 1), Calls: []record.PollCall{{Name: "list", Start: dur(t), End: dur(t + 1)}}}
		w.add(&p)
	}
	w.close()
	l := &LoadTest{watch: w, shelf: kept, info: &Cell{plan: experiment.Cell{Upload: &experiment.ResolvedUpload{}}}, Polls: Polls{N: len(w.start)}}
	if l.stalled(); len(l.Stalls) > 0 {
		t.Errorf("stalls %+v", l.Stalls)
	}
	// The same time without a large object under way is one.
	for i := 1000; i < 2000; i++ {
		kept.accepted[i].at += 3000
	}
	kept.accepted[1000].took += 3000
	if l.stalled(); len(l.Stalls) != 1 || l.Stalls[0].seconds() < 3000 {
		t.Errorf("stalls %+v", l.Stalls)
	}
}

// All that was known before is known of a load test that is not over: what was
// under way when the watching ended.
func TestStallAtTheEndIsOpen(t *testing.T) {
	s := plainLoad(4)
	s.hours, s.objects, s.going = 20, 1000, true
	s.job = func(i int, j *record.Job) {
		if i >= 700 {
			j.Accepted, j.Durable, j.State, j.Ref = 0, 0, record.JobWaiting, ""
			if i < 705 {
				j.State = record.JobPutting
			}
			j.Began = dur(s.times()[700] - 3)
		}
	}
	l := s.report(t).Loads[0]
	// The servers grow until 30 minutes before the end: what comes is not accepted.
	if len(l.Stalls) > 1 || len(l.Stalls) == 1 && l.Stalls[0].From < 19*3600 {
		t.Errorf("servers grew: %+v", l.Stalls)
	}
	delete(l.watch.values, system.ReadAbsolute)
	l.stalled()
	if len(l.Stalls) != 1 || l.Stalls[0].Until.Known() || l.Stalls[0].Objects != 300 {
		t.Errorf("stalls %+v", l.Stalls)
	}
}

// Nothing is stored from early on: nothing tells then what is usual, and a day is
// enough.
func TestNothingForADayIsAStall(t *testing.T) {
	for hours, found := range map[float64]bool{40: true, 16: false} {
		s := plainLoad(5)
		s.hours, s.objects, s.every = hours, 12, 300
		s.stall = [2]float64{2, hours - 1}
		s.job = func(i int, j *record.Job) { // those that are left wait since the stall began
			if i >= 2 {
				j.State, j.Began, j.Accepted, j.Durable = record.JobPutting, dur(2.1*3600), 0, 0
			}
		}
		s.going = true
		r := s.report(t)
		if f := r.found("stalled"); (f != nil) != found {
			t.Errorf("%g hours: %+v; %+v", hours, f, r.Loads[0].Objects)
		}
	}
}
