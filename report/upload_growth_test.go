package report

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/system"
)

// growthOfLatency is the growth of an API that takes latency(i) seconds for each of n polls.
func growthOfLatency(n int, latency func(i int) float64) (*Report, *Growth) {
	s := progressed{what: "API latency", unit: "s"}
	for i := range n {
		s.add(60*float64(i), latency(i))
	}
	r := &Report{Loads: []LoadTest{{System: "s3", Growth: []Growth{s.growth()}}}}
	return r, &r.Loads[0].Growth[0]
}

// Nothing that does not change is called slower: under noise that is independent,
// heavy-tailed, or goes on from poll to poll. What doubles is.
func TestGrowthSaysNoMoreThanTheDataShow(t *testing.T) {
	const times = 400
	noises := map[string]func(rng *rand.Rand) func() float64{
		"normal": func(rng *rand.Rand) func() float64 { return func() float64 { return 0.2 * rng.NormFloat64() } },
		"heavy-tailed": func(rng *rand.Rand) func() float64 {
			return func() float64 { return 0.1 * rng.NormFloat64() / rng.Float64() }
		},
		"autocorrelated": func(rng *rand.Rand) func() float64 {
			v := 0.0
			return func() float64 { v = 0.8*v + 0.1*rng.NormFloat64(); return v }
		},
	}
	for name, noise := range noises {
		var wrong, found, flat int
		for seed := range uint64(times) {
			n := []int{leastGrowth, 480, 1920}[seed%3]
			rule := func(rise float64) string {
				next := noise(rand.New(rand.NewPCG(seed, 21)))
				r, g := growthOfLatency(n, func(i int) float64 { return 0.0761 * (1 + rise*float64(i)/float64(n)) * math.Exp(next()) })
				f := slowing(r)
				if len(f) == 0 {
					return ""
				}
				if len(f) > 1 || f[0].Rule == "slows-down" && !(g.Change.Lo > 0) || f[0].Rule == "flat" && !(g.Change.Hi < findings.SmallGrowth) {
					t.Errorf("%s, seed %d: %+v of %+v", name, seed, f, g)
				}
				return f[0].Rule
			}
			switch rule(0) {
			case "slows-down":
				wrong++
			case "flat":
				flat++
			}
			if rule(1) == "slows-down" {
				found++
			}
		}
		t.Logf("%s: %d wrong, %d flat, %d of a doubling found of %d", name, wrong, flat, found, times)
		if wrong > times/100 {
			t.Errorf("%s: %d of %d without growth are called slower", name, wrong, times)
		}
		if flat < times/20 || found < times*8/10 {
			t.Errorf("%s: flat %d, a doubling found %d of %d", name, flat, found, times)
		}
	}
}

// pollsOf a system of which each call is made in some of the polls only, or is
// not answered.
func pollsOf(n int, call func(i int, name string) (made, answered bool)) *watch {
	w := newWatch()
	for i := range n {
		at := time.Duration(i) * time.Second
		p := record.Poll{Seq: int64(i), Start: at, End: at + 10*time.Millisecond}
		for k, name := range []string{"stats", "list", "health"} {
			made, answered := call(i, name)
			if !made {
				continue
			}
			c := record.PollCall{Name: name, Start: at + time.Duration(k)*time.Millisecond, End: at + time.Duration(k+1)*time.Millisecond}
			if !answered {
				c.Error = "connection refused"
			}
			p.Calls = append(p.Calls, c)
			if name == "stats" && answered {
				p.Readings = append(p.Readings, record.Reading{Name: system.ReadAbsolute, Value: float64(i)})
			}
		}
		w.add(&p)
	}
	w.close()
	return w
}

// A call that is expensive is made in some polls only: what it tells is a line
// nevertheless, to its last value. One that is not answered is a gap.
func TestRestsOfACallAreNoGap(t *testing.T) {
	parts := func(w *watch) (n int, to float64) {
		seen := map[int]bool{}
		for _, s := range w.levels(w.values[system.ReadAbsolute], 100) {
			seen[s.part] = true
			to = max(to, s.to)
		}
		return len(seen), to
	}
	w := pollsOf(61, func(i int, name string) (bool, bool) { return name != "stats" || i%10 == 0, true })
	if n, to := parts(w); n != 1 || to < 60 {
		t.Errorf("a call that is made in each tenth poll: %d parts, until %v s", n, to)
	}
	whole := 0
	for _, v := range w.latency {
		if !math.IsNaN(v) {
			whole++
		}
	}
	if whole != 7 {
		t.Errorf("%d polls tell the time of all calls together, want 7", whole)
	}
	w = pollsOf(61, func(i int, name string) (bool, bool) {
		return name != "stats" || i%10 == 0 || i > 20 && i < 30, i <= 20 || i >= 30
	})
	if n, to := parts(w); n != 2 || to < 60 {
		t.Errorf("a call that fails for nine polls: %d parts, until %v s", n, to)
	}
}
