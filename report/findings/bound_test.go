package findings

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// around are n values near a middle.
func around(rng *rand.Rand, n int, middle, spread float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = middle + spread*rng.NormFloat64()
	}
	return all
}

// Each limit is named where it is true, and not where the trials do not show it.
func TestBoundNamesEachLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	near := func(middle float64) []float64 { return around(rng, 6, middle, 0.01) }
	wide := func(middle float64) []float64 { return around(rng, 6, middle, 0.3) }
	for _, c := range []struct {
		name string
		s    Shares
		want []Limit
	}{
		{"at the line", Shares{Line: near(0.97)}, []Limit{Link}},
		{"at the line of round trips", Shares{Line: near(0.97), RoundTrips: near(0.8)}, []Limit{Link, RoundTrips}},
		{"at the line on a full machine", Shares{Line: near(0.97), Machine: near(0.99)}, []Limit{Link}},
		{"perhaps at the line", Shares{Line: []float64{0.99, 0.7, 0.95, 0.8, 0.99, 0.75}}, nil},
		{"between", Shares{Line: near(0.78)}, nil},
		{"beyond the line", Shares{Line: near(1.3), Machine: near(0.97)}, nil},
		{"far below", Shares{Line: near(0.4), Machine: near(0.3), Busiest: near(0.4), RoundTrips: near(0.1), Storage: near(0.02)}, []Limit{Waiting}},
		{"far below, several threads", Shares{Line: near(0.4), Busiest: near(1.7)}, []Limit{Waiting}},
		{"far below, nothing else measured", Shares{Line: near(0.4)}, nil},
		{"far below, and the disk alone measured", Shares{Line: near(0.4), Storage: near(0.02)}, nil},
		{"far below, many lost", Shares{Line: near(0.4), Machine: near(0.3), Lost: 0.3}, nil},
		{"far below, perhaps the disk", Shares{Line: near(0.4), Machine: near(0.3), Storage: wide(0.5)}, nil},
		{"round trips", Shares{Line: near(0.5), RoundTrips: near(0.8)}, []Limit{RoundTrips}},
		{"round trips that may be fewer", Shares{Line: near(0.5), RoundTrips: near(0.8), FewerTrips: 0.4, MoreTrips: 1.6}, nil},
		{"one thread", Shares{Line: near(0.5), Busiest: near(1.0), Machine: near(0.5)}, []Limit{CPU}},
		{"the machine", Shares{Line: near(0.5), Machine: near(0.97)}, []Limit{Machine}},
		{"the disk", Shares{Line: near(0.5), Storage: near(0.9)}, []Limit{Disk}},
		{"its own work", Shares{Line: near(0.2), Work: near(0.95)}, []Limit{Work}},
		{"a seeder", Shares{Line: near(0.4), Link: near(0.95)}, []Limit{OneLink}},
		{"all links", Shares{Line: near(0.95), Link: near(0.95)}, []Limit{Link}},
		{"the generator", Shares{Line: near(0.4), Saturated: 0.6}, []Limit{Generator}},
		{"two trials", Shares{Line: []float64{0.99, 0.99}, Machine: []float64{1, 1}}, nil},
		{"nothing", Shares{}, nil},
	} {
		c.s.System = "a"
		got := Bound([]Shares{c.s})[0].By
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: bound by %v, want %v", c.name, got, c.want)
		}
	}
}

// What is said has the figures, and what is not known.
func TestBoundWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	cells := []Shares{
		{System: "a", Where: "10 ms", Line: around(rng, 6, 0.4, 0.01), Machine: around(rng, 6, 0.2, 0.01)},
		{System: "a", Where: "1 ms", Line: around(rng, 6, 0.97, 0.01), RoundTrips: around(rng, 6, 0.7, 0.01)},
		{System: "b", Where: "1 ms", Line: around(rng, 6, 0.78, 0.01)},
	}
	all := SayBounds(Bound(cells))
	said := map[string]string{}
	for _, f := range all {
		said[f.Rule] = f.Title + "\n" + strings.Join(f.Evidence, "\n")
		if f.Try == "" || f.Text == "" {
			t.Errorf("%s says too little", f.Rule)
		}
	}
	for rule, want := range map[string]string{
		"waiting":    "a in 1 of 2 cells: 10 ms: at 41 %",
		"link-bound": "a in 1 of 2 cells: 1 ms: at 98 %",
		"rtt-bound":  "also bound by link",
	} {
		if !strings.Contains(said[rule], want) {
			t.Errorf("%s: %q, want %q", rule, said[rule], want)
		}
	}
	for _, want := range []string{"19 %", "(n = 6)", "not known: round trips, CPU and the disk"} {
		if !strings.Contains(said["waiting"], want) {
			t.Errorf("waiting: %q, want %q", said["waiting"], want)
		}
	}
	if len(all) != 3 || strings.Contains(said["link-bound"], "b in") {
		t.Errorf("said %v", said)
	}
}

// Workers, or threads of one process, that use one CPU together are none that never
// sleeps: nothing is claimed of a thread.
func TestAboutOneCPUIsNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	cells := []Shares{{System: "a", Line: around(rng, 6, 0.4, 0.01), Busiest: around(rng, 6, 1.02, 0.01), Machine: around(rng, 6, 0.3, 0.01), RoundTrips: around(rng, 6, 0.8, 0.01)}}
	said := SayBounds(Bound(cells))
	if len(said) != 2 || said[0].Rule != "cpu-bound" {
		t.Fatalf("said %+v", said)
	}
	if f := said[0]; f.Tone != Neutral || strings.Contains(f.Title, "Limited") || !strings.Contains(f.Text, "is not measured") {
		t.Errorf("said %+v", f)
	}
	if e := said[1].Evidence[0]; strings.Contains(e, "bound by") || !strings.Contains(e, "about one CPU is used") {
		t.Errorf("said %q", e)
	}
}

// Runs in which nothing is used up, and none is far below its line: however noisy, in
// at most one of a hundred something is named.
func TestBoundOfNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	wrong := map[Limit]int{}
	const runs = 400
	for range runs {
		cells := make([]Shares, 1+rng.IntN(12))
		noise := 0.02 + 0.2*rng.Float64()
		for i := range cells {
			n := 1 + rng.IntN(8)
			of := func(lo, hi float64) []float64 { return around(rng, n, lo+(hi-lo)*rng.Float64(), noise) }
			cells[i] = Shares{System: "a", Line: of(0.71, 0.84), RoundTrips: of(0, 0.45), Busiest: of(0, 0.85), Machine: of(0, 0.8), Storage: of(0, 0.45), Work: of(0, 0.8), Link: of(0, 0.8)}
		}
		said := map[Limit]bool{}
		for _, b := range Bound(cells) {
			for _, l := range b.By {
				said[l] = true
			}
		}
		for l := range said {
			wrong[l]++
		}
	}
	for l, n := range wrong {
		if n*100 > runs {
			t.Errorf("%s was named in %d of %d runs", l, n, runs)
		}
	}
	t.Logf("named: %v of %d", wrong, runs)
}
