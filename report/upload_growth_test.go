package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// growthOfLatency is the growth against time of an API that takes latency(i)
// seconds for each of n polls.
func growthOfLatency(t *testing.T, n int, latency func(i int) float64) (*Report, *Growth) {
	t.Helper()
	var s progressed
	s.what, s.unit = "API latency", "s"
	for i := range n {
		s.y = append(s.y, latency(i))
		s.x[2] = append(s.x[2], float64(i)/60)
	}
	g, ok := growthOf(s, 2, "hours")
	if !ok {
		t.Fatal("no growth is judged")
	}
	r := &Report{Loads: []LoadTest{{System: "s3", Growth: []Growth{g}}}}
	return r, &r.Loads[0].Growth[0]
}

// What is said of a growth is what its interval allows, whatever it is.
func TestGrowthSaysNoMoreThanTheDataShow(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 21))
		n := []int{13, 20, 60, 400}[seed%4]
		noise := []float64{0.02, 0.3, 2}[seed/4%3]
		rise := []float64{0, 0.03, 0.5, -0.5, 4}[seed/12%5]
		step := seed/60%2 == 1
		r, g := growthOfLatency(t, n, func(i int) float64 {
			u := float64(i) / float64(n-1)
			if step {
				u = math.Round(u)
			}
			return 0.0761 * (1 + rise*u) * math.Exp(noise*rng.NormFloat64())
		})
		found := latencyGrowth(r)
		if len(found) != 1 || len(found[0].Evidence) != 1 {
			t.Fatalf("seed %d: one series gives %+v", seed, found)
		}
		lo, hi := g.Change.Lo, g.Change.Hi
		counts[found[0].Rule]++
		switch found[0].Rule {
		case "latency-grows":
			if !(lo > 0) || !(g.First < g.Last) {
				t.Errorf("seed %d: %q says that it grows by %v to %v", seed, found[0].Evidence, lo, hi)
			}
		case "latency-flat":
			if !(hi < stats.SmallGrowth) {
				t.Errorf("seed %d: %q says that it does not grow, and +%v is not excluded", seed, found[0].Evidence, hi)
			}
		}
		// The two ends and the change that stands beside them are one statement.
		if g.First.Known() && g.Change.Value.Known() && math.Abs(float64(g.Last/g.First-1-g.Change.Value)) > 1e-6*math.Abs(float64(1+g.Change.Value)) {
			t.Errorf("seed %d: %v → %v is not %v", seed, g.First, g.Last, g.Change)
		}
		if g.Level.Known() && (g.First.Known() || g.Last.Known() || g.Change.Value.Known() || g.Shown) {
			t.Errorf("seed %d: a level with ends: %+v", seed, g)
		}
		if g.Best == "constant" && strings.Contains(found[0].Evidence[0], "→") && g.Fits {
			t.Errorf("seed %d: a level is told as a change: %q", seed, found[0].Evidence)
		}
	}
	for _, rule := range []string{"latency-grows", "latency-flat", "latency-unclear"} {
		if counts[rule] < 20 {
			t.Errorf("%s is never tested: %v", rule, counts)
		}
	}
}

// One that is uneven over a short time tells nothing, and the words say what is
// not excluded.
func TestGrowthThatCannotBeTold(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	r, g := growthOfLatency(t, 25, func(int) float64 { return 0.0761 * math.Exp(1.5*rng.NormFloat64()) })
	f := latencyGrowth(r)
	if len(f) != 1 || f[0].Title != "Whether the API gets slower cannot be told" || f[0].Tone != Neutral {
		t.Fatalf("%+v of %+v", f, g)
	}
	if want := fmt.Sprintf("a change of %+.0f to %+.0f %% is not excluded", 100*float64(g.Change.Lo), 100*float64(g.Change.Hi)); !strings.Contains(f[0].Evidence[0], want) {
		t.Errorf("%q lacks %q", f[0].Evidence[0], want)
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
