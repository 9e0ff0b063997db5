package report

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// A null run is one in which nothing is wrong and no system, level or time
// differs from another: what is left is noise. A rule that claims a problem or a
// difference there is wrong.
const (
	// nullRuns of every scenario are looked at; nullRunsEnv asks for more.
	nullRuns    = 200
	nullRunsEnv = "PLIMSOLL_NULL_RUNS"
	// A rule that errs in 1 % of null runs is found five times or more among 200 once
	// in twenty times (binomial: 5.2 %): with as many its rate is not believed to be
	// below that. The seeds are fixed, so the test gives the same each time.
	nullRate  = 0.01
	nullAlpha = 0.055
)

// nullNoise is what repeated trials of a null run differ by.
type nullNoise struct {
	rng    *rand.Rand
	trial  float64 // standard deviation of ln between trials
	common []float64
}

// noiseOf draws how noisy a run is: 1 % to 8 % between trials, and blocks that
// differ by some 5 %, for all alike.
func noiseOf(seed uint64, blocks int) *nullNoise {
	n := &nullNoise{rng: rand.New(rand.NewPCG(seed, 0x6e756c6c))}
	n.trial = 0.01 * math.Pow(8, n.rng.Float64())
	for range blocks {
		n.common = append(n.common, math.Exp(0.05*n.rng.NormFloat64()))
	}
	return n
}

// times is a factor of the noise between trials.
func (n *nullNoise) times() float64 { return n.by(n.trial) }

func (n *nullNoise) by(sd float64) float64 { return math.Exp(sd * n.rng.NormFloat64()) }

// between is a level, uniform on the logarithm.
func (n *nullNoise) between(lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, n.rng.Float64())
}

// nullScenario makes null runs of a scenario.
type nullScenario struct {
	name string
	run  func(t testing.TB, seed uint64) *input
	// What such runs really have, and why: these rules are no error there.
	has map[string]string
}

func TestNullRuns(t *testing.T) {
	t.Parallel()
	runs := nullRuns
	if s := os.Getenv(nullRunsEnv); s != "" {
		var err error
		runs, err = strconv.Atoi(s)
		must(t, err)
	}
	if testing.Short() {
		runs = 20
	}
	most := mostFalse(runs)
	for _, s := range nullScenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found, example := map[string]int{}, map[string]string{}
			for seed := range uint64(runs) {
				r := concluded(t, s.run(t, seed+1))
				if r.Run.Valid == 0 || r.Run.Valid != r.Run.Planned {
					t.Fatalf("seed %d: %+v: a null run is whole", seed+1, r.Run)
				}
				seen := map[string]bool{}
				for _, f := range r.Findings {
					if key := claim(f); !seen[key] && !grewIndeed(f) {
						seen[key] = true
						found[key]++
						example[key] = fmt.Sprintf("seed %d: %s: %s", seed+1, f.Title, strings.Join(f.Evidence, "\n      "))
					}
				}
			}
			for _, rule := range slices.Sorted(maps.Keys(found)) {
				n := found[rule]
				t.Logf("%-24s %4d of %d (%.1f %%)", rule, n, runs, 100*float64(n)/float64(runs))
				if why := s.has[rule]; n > most && why == "" {
					t.Errorf("%s is found in %d of %d null runs, at most %d are believable at %g %%\n   %s", rule, n, runs, most, 100*nullRate, example[rule])
				}
			}
		})
	}
}

func nullScenarios(t testing.TB) []nullScenario {
	return []nullScenario{nullRetrieve(t), nullOverhead(t), nullUpload(), nullDisseminate(t), nullSync(t)}
}

// concluded is what is found in a run. Of the ratios only those that a rule looks at
// are computed: the others take most of the time.
func concluded(t testing.TB, in *input) *Report {
	t.Helper()
	r := summarised(in)
	r.lens.compared = slices.DeleteFunc(slices.Clone(r.lens.compared), func(key string) bool { return key != r.headline && !slices.Contains(gateMetrics, key) })
	r.conclude(in)
	must(t, in.err)
	return r
}

// claim is a finding's rule and tone: some rules claim nothing in a quiet one.
func claim(f Finding) string { return f.Rule + " " + string(f.Tone) }

// mostFalse is the largest number of false findings among so many null runs at
// which a rate of 1 % is still not refuted from below.
func mostFalse(runs int) int {
	p, sum := math.Pow(1-nullRate, float64(runs)), 0.0
	for k := range runs {
		if sum += p; 1-sum <= nullAlpha {
			return k
		}
		p *= float64(runs-k) / float64(k+1) * nullRate / (1 - nullRate) // of k + 1
	}
	return runs
}

func TestMostFalse(t *testing.T) {
	for runs, want := range map[int]int{200: 4, 2000: 27} {
		if got := mostFalse(runs); got != want {
			t.Errorf("of %d runs %d, want %d", runs, got, want)
		}
	}
}

// streamed makes a stream of a trial's rows that are in memory.
func streamed[T any](of map[int64][]T) func(int64) iter.Seq2[T, error] {
	return func(trial int64) iter.Seq2[T, error] { return with(slices.Values(of[trial])) }
}

// nullInput begins the input of a null run of a plan.
func nullInput(plan *experiment.Plan, metrics []record.Metric) *input {
	return &input{meta: map[string]string{"environment": `{"kernel":"6.1.0","cpu.count":"4"}`}, plan: viewOf(plan), raw: []byte("{}"), name: "run-dir", metrics: metrics,
		events: []record.Event{{At: costsBegun, Kind: "phase", What: "run begins"}, {At: costsBegun, Kind: "phase", What: "run ends"}}}
}
