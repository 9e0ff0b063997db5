package findings

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

// valued is what trials give, with the interval that reports use.
func valued(xs []float64) Value {
	i := stats.MedianCI(xs, 0.95)
	v := Value{Mid: i.Mid, Lo: i.Lo, Hi: i.Hi, N: len(xs)}
	if !i.Bounded() {
		v.Lo, v.Hi = slices.Min(xs), slices.Max(xs)
	}
	return v
}

// trialsAbout are so many trials about a middle.
func trialsAbout(rng *rand.Rand, mid, spread float64, n int) Value {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = mid * math.Exp(spread*rng.NormFloat64())
	}
	return valued(xs)
}

func TestShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for rule, c := range map[string]struct {
		all  []Finding
		want []string
	}{
		"start-up": {StartUp([]Started{
			{System: "boxo", Cell: "1 MB", Share: trialsAbout(rng, 0.6, 0.05, 6), Before: 0.6, Whole: 1, Then: "then 3 MB/s"},
			{System: "boxo", Cell: "10 MB", Share: trialsAbout(rng, 0.1, 0.05, 6), Before: 0.6, Whole: 6},
			{System: "nginx", Share: trialsAbout(rng, 0.9, 0.01, 2), Before: 1, Whole: 1},
		}), []string{"boxo in 1 of 2 cells", "1 MB: 600 ms of 1.00 s", "then 3 MB/s", "n = 6"}},
		"sent-twice": {SentTwice([]Carried{
			{Name: "deluge", Link: trialsAbout(rng, 1.06, 0.01, 5), Payload: trialsAbout(rng, 1, 0.01, 5), Of: "content"},
			{Name: "codex", Link: trialsAbout(rng, 1.7, 0.02, 5), Payload: trialsAbout(rng, 1.4, 0.01, 5), Of: "content"},
		}), []string{"codex: on the link 1.", "payload 1.4", "n = 5"}},
		"unbalanced": {Unbalanced([]Burden{
			{Name: "codex", Parties: "seeders", Of: 4, Busiest: trialsAbout(rng, 3, 0.05, 6), Useless: 0.5},
			{Name: "deluge", Parties: "seeders", Of: 4, Busiest: trialsAbout(rng, 1.2, 0.05, 6)},
			{Name: "fanout", Parties: "seeders", Of: 1, Busiest: trialsAbout(rng, 3, 0.05, 6)},
		}), []string{"codex: the busiest of 4 seeders did", "50 % of them did nothing"}},
	} {
		if len(c.all) != 1 || c.all[0].Rule != rule || len(c.all[0].Evidence) != 1 || c.all[0].Try == "" {
			t.Errorf("%s: %+v", rule, c.all)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(c.all[0].Evidence[0], want) {
				t.Errorf("%s: %q lacks %q", rule, c.all[0].Evidence[0], want)
			}
		}
	}
}

// Where trials lie about what is usual, with whatever noise, nothing is said.
func TestSharesOfNothing(t *testing.T) {
	const runs = 400
	said := map[string]int{}
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n, noise := 3+rng.IntN(8), 0.3*rng.Float64()
		for _, f := range slices.Concat(
			StartUp([]Started{{System: "a", Share: trialsAbout(rng, 0.15, noise, n)}}),
			SentTwice([]Carried{{Name: "a", Link: trialsAbout(rng, 1.06, noise/5, n), Payload: trialsAbout(rng, 1.02, noise/10, n)}}),
			Unbalanced([]Burden{{Name: "a", Parties: "peers", Of: 4, Busiest: trialsAbout(rng, 1.15, noise/2, n)}}),
		) {
			said[f.Rule]++
		}
	}
	for rule, n := range said {
		if n > runs/100 {
			t.Errorf("%s: said %d times in %d", rule, n, runs)
		}
	}
	nan := math.NaN()
	if f := slices.Concat(StartUp([]Started{{Share: Value{nan, nan, nan, 9}}}), SentTwice([]Carried{{Link: Value{nan, nan, nan, 9}}}), Unbalanced([]Burden{{Of: 3, Busiest: Value{nan, nan, nan, 9}, Useless: nan}})); f != nil {
		t.Errorf("%+v", f)
	}
}

// shareCases are of the rules of what is wasted.
func shareCases() map[string]example {
	rng := rand.New(rand.NewPCG(3, 3))
	about := func(mid float64) Value { return trialsAbout(rng, mid, 0.02, 6) }
	flat, noise := func(float64) float64 { return 100e6 }, alike(rng, 0.9, 5e5)
	opens := living("p", flat)
	for i := range opens.Files {
		opens.Files[i] += math.Floor(50 * opens.Hours[i])
	}
	starts := living("p", flat)
	for i := range starts.Thread {
		starts.Thread[i] += math.Floor(50 * starts.Hours[i])
	}
	teeth := living("p", func(h float64) float64 { return 100e6 * (1 + h + 0.5*math.Mod(4.7*h, 1)) })
	quiet := []Life{living("p", func(float64) float64 { return 100e6 + noise() })}
	full := func(u float64) float64 { return 3 * min(1, 0.5+u) }
	right, small := kept(rng, full), kept(rng, full)
	small.Copies, small.Metadata = 4, true
	halted := moving(rng, func() float64 { return 0.5 * rng.ExpFloat64() })
	goes := halted
	goes.Pauses = slices.Clone(halted.Pauses)
	halted.Pauses[50].To = halted.Pauses[50].From + 30
	return map[string]example{
		"start-up":         when(StartUp, []Started{{System: "a", Share: about(0.6), Before: 0.6, Whole: 1}}, []Started{{System: "a", Share: about(0.1), Before: 0.6, Whole: 6}}),
		"sent-twice":       when(SentTwice, []Carried{{Name: "a", Link: about(1.7), Of: "content"}}, []Carried{{Name: "a", Link: about(1.06), Of: "content"}}),
		"unbalanced":       when(Unbalanced, []Burden{{Name: "a", Parties: "peers", Of: 4, Busiest: about(3)}}, []Burden{{Name: "a", Parties: "peers", Of: 4, Busiest: about(1.2)}}),
		"leak-memory":      when(Leak, []Life{living("p", func(h float64) float64 { return 100e6 + 30e6*h + noise() })}, quiet),
		"grew":             when(Leak, []Life{teeth}, quiet),
		"leak-files":       when(Leak, []Life{opens}, quiet),
		"leak-threads":     when(Leak, []Life{starts}, quiet),
		"more-than-asked":  when(Redundancy, []Redundant{kept(rng, func(u float64) float64 { return 5 * min(1, 0.5+u) })}, []Redundant{right}),
		"small-objects":    when(Redundancy, []Redundant{small}, []Redundant{right}),
		"redundancy-never": when(Redundancy, []Redundant{kept(rng, func(float64) float64 { return 2 })}, []Redundant{right}),
		"stalled":          when(Stalls, []Moving{halted}, []Moving{goes}),
		"harness-busy":     when(Harness, []CPUs{{"c", []float64{0.2, 0.21, 0.19}, nil}}, []CPUs{{"c", []float64{0.045, 0.058, 0.051}, nil}}),
		"drift":            when(findDrift, drifting(rng, 3, 0.02, 1, 0.97, 0.93, 0.9, 0.87, 0.84), drifting(rng, 3, 0.02, 1, 1, 1, 1, 1, 1)),
	}
}

func findDrift(s Drifting) []Finding {
	d := Drift{Metric: "Throughput", Systems: []Drifting{s}, Seed: 1}
	return d.Find()
}
