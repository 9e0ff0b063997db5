package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/option"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

const simulated = `
scenario: retrieve
systems: [nginx, boxo]
baseline: nginx
link: {rate: 1Gbit, delay: 1ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 400}
repetitions: 8
warmup: 0
`

var simulatedMetrics = []record.Metric{
	{Key: "throughput", Name: "throughput", Unit: "B/s", Better: record.Higher},
	{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher},
	{Key: "busiest_cpu", Name: "CPU of the busiest process", Unit: "1", Better: record.Neither},
}

// noises are three models of what repeated trials differ by, on the logarithmic scale.
var noises = map[string]func(rng *rand.Rand) func() float64{
	"normal": func(rng *rand.Rand) func() float64 { return func() float64 { return 0.03 * rng.NormFloat64() } },
	"heavy-tailed": func(rng *rand.Rand) func() float64 {
		t := distuv.StudentsT{Sigma: 0.03, Nu: 3, Src: rng}
		return t.Rand
	},
	"autocorrelated": func(rng *rand.Rand) func() float64 {
		last := 0.0
		return func() float64 {
			last = 0.5*last + 0.03*math.Sqrt(1-0.25)*rng.NormFloat64()
			return last
		}
	},
}

// simulate makes the result of one run: boxo is ratio times as fast as nginx, and each
// system has a good or bad block now and then in all of its cells.
func simulate(t testing.TB, plan *experiment.Plan, seed uint64, noise func(*rand.Rand) func() float64, ratio,
	systemByBlock float64) *analysis.Result {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	next := noise(rng)
	var trials []record.Trial
	for block := range plan.Blocks {
		effect := map[string]float64{}
		for _, i := range rng.Perm(len(plan.Cells)) {
			c := plan.Cells[i]
			if _, has := effect[c.System]; !has {
				effect[c.System] = systemByBlock * rng.NormFloat64()
			}
			x := 40e6 * math.Exp(next()+effect[c.System])
			if c.System == "boxo" {
				x *= ratio
			}
			trials = append(trials, trialOf(c, block, len(trials), 400,
				map[string]float64{"throughput": x, "success_rate": 1, "busiest_cpu": 0.5}))
		}
	}
	return analysed(t, plan, retrieve.Scenario{}.View(), simulatedMetrics, trials)
}

// trialOf is a trial in which so many operations succeeded; others were done before it.
func trialOf(c experiment.Cell, block, before int, ok int64, metrics map[string]float64) record.Trial {
	return record.Trial{ID: int64(before + 1), Cell: c.ID, Block: block, State: record.Done, Seconds: 10,
		Outcomes: map[string]int64{"ok": ok}, Metrics: metrics}
}

func analysed(t testing.TB, plan *experiment.Plan, view *analysis.View, metrics []record.Metric, trials []record.Trial,
	links ...record.LinkCheck) *analysis.Result {
	t.Helper()
	r, err := analysis.Analyse(analysis.FrameOf(plan, view, metrics, trials, links...))
	must(t, err)
	return r
}

func simulatedPlan(t testing.TB, file string) *experiment.Plan {
	t.Helper()
	var catalog experiment.Catalog
	for _, name := range []string{"nginx", "boxo", "static", "s3"} {
		catalog = append(catalog, experiment.SystemSpec{Name: name, Modes: []string{"start"},
			Can: []string{"http"}})
	}
	catalog = append(catalog, experiment.SystemSpec{Name: "ledger", Modes: []string{"start"}, Can: []string{"follow"},
		Options: []option.Option{{Name: "batch", Type: "int", Default: "100"},
			{Name: "subscriber", Type: "enum", Enum: []string{"none", "full"}, Default: "none"}}})
	e, err := experiment.Parse("simulated.yaml", []byte(file), nil, catalog)
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// simulatedCosts has operations that are fitted and memory, simulatedFills what slows
// down with the number of objects.
const (
	simulatedCosts = `
scenario: overhead
systems: [nginx, boxo]
baseline: nginx
link: {rate: 100Mbit, delay: [0s, 10ms, 40ms]}
data: {size: [1kB, 100kB, 1MB, 10MB]}
overhead: {operation: [put, get], count: 3}
repetitions: 6
warmup: 0
`
	simulatedFills = `
scenario: overhead
systems: [nginx, boxo]
baseline: nginx
data: {size: 1kB}
overhead: {operation: fill, objects: 1000, count: 3}
repetitions: 10
warmup: 0
`
)

// costTruth is what a simulated run of overhead has to find: boxo takes ratio times as
// long as nginx, a client's memory grows by so much of each file byte, and a put takes so
// much longer for each 1,000 objects.
type costTruth struct{ ratio, memory, objects float64 }

// simulateCosts makes the result of a run of overhead with five times the noise. The model
// of costs holds, and each system has a good or bad block now and then in all that it does.
func simulateCosts(
	t testing.TB, plan *experiment.Plan, seed uint64, noise func(*rand.Rand) func() float64, truth costTruth,
	systemByBlock float64,
) *analysis.Result {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	streams := map[string]func() float64{}
	noisy := func(v float64, of string) float64 { // trials that follow each other are alike
		if streams[of] == nil {
			streams[of] = noise(rng)
		}
		return v * math.Exp(5*streams[of]())
	}
	var trials []record.Trial
	var links []record.LinkCheck
	stored := map[string]float64{}
	for block := range plan.Blocks {
		slow := map[string]float64{"nginx": math.Exp(systemByBlock * rng.NormFloat64()),
			"boxo": truth.ratio * math.Exp(systemByBlock*rng.NormFloat64())}
		for _, i := range rng.Perm(len(plan.Cells)) {
			c := plan.Cells[i]
			rtt := 0.0003 + 2*c.Link.Delay.Seconds()
			m := map[string]float64{"success_rate": 1,
				"duration_p50": noisy(slow[c.System]*(0.02+3*rtt+float64(c.Data.Size)/10e6), "duration")}
			trial := trialOf(c, block, len(trials), 3, m)
			for _, process := range []string{"client-1", "storage-1"} {
				for _, kind := range []string{record.DetailRSSStart, record.DetailRSSPeak} {
					v := 80e6
					if process == "client-1" && kind == record.DetailRSSPeak {
						v += truth.memory * float64(c.Data.Size) * slow[c.System]
					}
					trial.Details = append(trial.Details,
						record.Detail{Kind: kind, Name: c.System + "/" + process, Value: noisy(v, process+kind)})
				}
			}
			if c.Overhead.Operation == "fill" {
				stored[c.System] += 1000
				m["stored_objects"] = stored[c.System]
				for _, key := range []string{"put_p50", "get_p50", "stat_p50"} {
					m[key] = noisy((0.02+truth.objects*stored[c.System]/1000)*slow[c.System], key)
				}
				m["duration_p50"] = m["put_p50"]
			}
			trials = append(trials, trial)
			links = append(links, record.LinkCheck{Trial: trial.ID, WantRTT: rtt, RTT: rtt, OK: true})
		}
	}
	s := overhead.Scenario{}
	return analysed(t, plan, s.View(), s.Metrics(), trials, links...)
}

// simulations is how many runs are simulated: few, unless `make bench` asks for more.
func simulations(t testing.TB, few int) int {
	asked := os.Getenv("PLIMSOLL_SIMULATIONS")
	if asked == "" {
		return few
	}
	n, err := strconv.Atoi(asked)
	must(t, err)
	return n
}

// atMost is how often something may happen in n simulations whose chance is a share, with
// three standard errors.
func atMost(n int, share float64) int { return int(share*float64(n) + 3*math.Sqrt(share*float64(n))) }

// Of runs in which nothing differs and nothing is wrong, a rule may fire in one of a
// hundred, and a difference may be significant over all cells in one of twenty.
func TestNullRuns(t *testing.T) {
	for scenario, c := range map[string]struct {
		file  string
		few   int
		costs bool
	}{
		"retrieve": {simulated, 100, false},
		"one cell": {strings.Replace(simulated, "[1, 8, 64]", "8", 1), 100, false},
		"four systems": {strings.Replace(strings.Replace(simulated, "[nginx, boxo]", "[nginx, boxo, static, s3]", 1),
			"repetitions: 8", "repetitions: 6", 1), 100, false},
		"overhead": {simulatedCosts, 25, true},
		"fill":     {simulatedFills, 100, true},
	} {
		plan, runs := simulatedPlan(t, c.file), simulations(t, c.few)
		for name, noise := range noises {
			t.Run(scenario+"/"+name, func(t *testing.T) {
				t.Parallel()
				fired, differ := map[string]int{}, 0
				for seed := range uint64(runs) {
					var r *analysis.Result
					if c.costs {
						r = simulateCosts(t, plan, seed, noise, costTruth{ratio: 1}, 0.05)
					} else {
						r = simulate(t, plan, seed, noise, 1, 0.05)
					}
					for _, f := range r.Findings {
						fired[f.Rule]++
					}
					if slices.ContainsFunc(r.Overall, func(o analysis.Overall) bool {
						return o.Metric == r.Headline && o.Significant
					}) {
						differ++
					}
				}
				t.Logf("of %d runs: rules %v, %d differences", runs, fired, differ)
				for rule, n := range fired {
					if n > runs/100 && (runs >= 1000 || n > atMost(runs, 0.01)) {
						t.Errorf("%s fired in %d of %d runs", rule, n, runs)
					}
				}
				if differ > atMost(runs, 0.05) {
					t.Errorf("a difference is significant in %d of %d runs", differ, runs)
				}
			})
		}
	}
}

// The interval of the ratio over all cells covers the truth in 93 % or more, with
// effects of system and block together.
func TestOverallCovers(t *testing.T) {
	const truth = 0.9
	plan, runs := simulatedPlan(t, simulated), simulations(t, 100)
	for name, noise := range noises {
		t.Run(name, func(t *testing.T) {
			var overall covered
			found := 0
			for seed := range uint64(runs) {
				r := simulate(t, plan, 1000+seed, noise, truth, 0.05)
				o, _ := r.OverallOf("boxo", "throughput")
				overall.add(truth, o.Lo, o.Hi)
				if o.Better < 0 {
					found++
				}
			}
			t.Logf("covers in %d, slower found in %d of %d", overall.yes, found, runs)
			if runs-overall.yes > atMost(runs, 0.05) {
				t.Errorf("covers in %d of %d", overall.yes, runs)
			}
		})
	}
}

// covered counts how often the intervals of one kind cover the truth.
type covered struct{ yes, of int }

func (c *covered) add(truth float64, lo, hi analysis.Num) {
	c.of++
	if float64(lo) <= truth && truth <= float64(hi) {
		c.yes++
	}
}

// The intervals of what an operation costs cover the truth, with effects of system and
// block together: those of A, R and B, and of the ratio to the baseline. So do those of
// slopes: of a client's memory over the file's bytes, and of times over objects stored.
func TestCostTableCovers(t *testing.T) {
	truth := costTruth{ratio: 1.2, memory: 20, objects: 0.002}
	for scenario, c := range map[string]struct {
		file, table, process string             // process: that of the rows that are looked at
		truths               map[string]float64 // by column, of boxo
	}{
		"costs": {simulatedCosts, "cost", "",
			map[string]float64{"a": 0.02 * 1.2, "rounds": 3 * 1.2, "b": 1.2 / 10e6, "against": 1.2}},
		"memory":  {simulatedCosts, "memory", "client", map[string]float64{"growth": 20 * 1.2}},
		"objects": {simulatedFills, "objects", "", map[string]float64{"slope": 0.002 * 1.2}},
	} {
		plan, runs := simulatedPlan(t, c.file), simulations(t, 20)
		for name, noise := range noises {
			t.Run(scenario+"/"+name, func(t *testing.T) {
				t.Parallel()
				covers := map[string]*covered{}
				for key := range c.truths {
					covers[key] = &covered{}
				}
				for seed := range uint64(runs) {
					table := simulateCosts(t, plan, seed, noise, truth, 0.05).Table(c.table)
					for i := range table.Rows {
						if table.Get(i, "system").Text != "boxo" ||
							c.process != "" && table.Get(i, "process").Text != c.process {
							continue
						}
						for key, truth := range c.truths {
							v := table.Get(i, key)
							covers[key].add(truth, v.Lo, v.Hi)
						}
					}
				}
				for key, n := range covers {
					t.Logf("%s is covered in %d of %d", key, n.yes, n.of)
					if n.of < runs || n.of-n.yes > atMost(n.of, 0.07) {
						t.Errorf("%s is covered in %d of %d", key, n.yes, n.of)
					}
				}
			})
		}
	}
}

// The intervals of a cell cover the truth, with effects of system and block together:
// medians, and ratios to the baseline of four and five pairs, which are Student's, and of
// more.
func TestCellsCover(t *testing.T) {
	const truth = 0.9
	for _, blocks := range []int{4, 5, 6, 8} {
		plan := simulatedPlan(t, strings.Replace(simulated, "repetitions: 8", fmt.Sprint("repetitions: ", blocks), 1))
		runs := simulations(t, 40)
		for name, noise := range noises {
			t.Run(fmt.Sprint(blocks, "/", name), func(t *testing.T) {
				t.Parallel()
				var ratios, medians covered
				for seed := range uint64(runs) {
					for _, c := range simulate(t, plan, 2000+seed, noise, truth, 0.05).Cells {
						if q, ok := c.Ratios["throughput"]; ok {
							ratios.add(truth, q.Lo, q.Hi)
						}
						if m := c.Metrics["throughput"]; m.Exact {
							medians.add(map[bool]float64{true: truth, false: 1}[c.System == "boxo"]*40e6, m.Lo, m.Hi)
						}
					}
				}
				t.Logf("ratios cover in %d of %d, medians in %d of %d", ratios.yes, ratios.of, medians.yes, medians.of)
				for _, n := range []covered{ratios, medians} {
					// The cells of a system share its blocks: three count little more than one.
					if n.of-n.yes > 3*atMost(n.of/3, 0.07) {
						t.Errorf("an interval covers in %d of %d", n.yes, n.of)
					}
				}
				if ratios.of != 3*runs || medians.of == 0 && blocks >= 6 {
					t.Errorf("%d ratios, %d medians", ratios.of, medians.of)
				}
			})
		}
	}
}

// What is wrong is found: a failing server, drift, a fall under load, wrong bytes.
func TestPlantedTruths(t *testing.T) {
	plan := simulatedPlan(t, simulated)
	for rule, spoil := range map[string]func(c experiment.Cell, t *record.Trial){
		"failures": func(c experiment.Cell, t *record.Trial) {
			if c.System == "boxo" {
				t.Outcomes = map[string]int64{"ok": 390, "error": 10}
			}
		},
		"deadlines": func(_ experiment.Cell, t *record.Trial) {
			t.Outcomes = map[string]int64{"ok": 390, "deadline": 10}
		},
		"wrong-bytes": func(c experiment.Cell, t *record.Trial) {
			if c.System == "boxo" && t.Block == 3 {
				t.Outcomes = map[string]int64{"ok": 399, "wrong-bytes": 1}
			}
		},
		"drift": func(_ experiment.Cell, t *record.Trial) {
			t.Metrics["throughput"] *= math.Pow(0.9, float64(t.Block))
		},
		"throughput-falls": func(c experiment.Cell, t *record.Trial) {
			t.Metrics["throughput"] /= math.Sqrt(float64(c.Retrieve.Concurrency))
		},
		"cpu-bound":      func(c experiment.Cell, t *record.Trial) { t.Metrics["busiest_cpu"] = 0.99 },
		"trials-invalid": func(c experiment.Cell, t *record.Trial) { t.Invalid = []string{record.ReasonBoxBusy} },
		"not-executed": func(c experiment.Cell, t *record.Trial) {
			t.State, t.Error = record.Failed, "no space left on device"
		},
		"skipped": func(c experiment.Cell, t *record.Trial) {
			t.State, t.Error = record.Skipped, "it would take an hour"
		},
		"not-compared": func(_ experiment.Cell, t *record.Trial) {
			t.Notes = []string{"receive: drop (content not compared)"}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			r := simulate(t, plan, 7, noises["normal"], 1, 0)
			if r.Found(rule) {
				t.Fatal("it fires in a run without it")
			}
			spoiled := altered(t, plan, r, retrieve.Scenario{}.View(), simulatedMetrics, func(tr *record.Trial) {
				i := slices.IndexFunc(plan.Cells, func(c experiment.Cell) bool { return c.ID == tr.Cell })
				spoil(plan.Cells[i], tr)
			})
			if !spoiled.Found(rule) {
				t.Errorf("findings %s", fmt.Sprint(spoiled.Findings))
			}
		})
	}
}

// Trials that were cut off count against a gate on a rate: they are no reason to pass.
func TestGatesCountWhatWasCutOff(t *testing.T) {
	plan := simulatedPlan(t, simulated)
	view := retrieve.Scenario{}.View()
	view.Censored = []string{"throughput"}
	view.Polled = map[string]analysis.Polled{"throughput": {Between: true, Inverse: []string{"late", "early"}}}
	metrics := append([]record.Metric{{Key: "resolution", Unit: "s"}, {Key: "late", Unit: "s"},
		{Key: "early", Unit: "s"}}, simulatedMetrics...)
	cut := func(share int) *analysis.Result {
		r := simulate(t, plan, 3, noises["normal"], 1, 0)
		return altered(t, plan, r, view, metrics, func(tr *record.Trial) {
			tr.Metrics["resolution"], tr.Metrics["late"], tr.Metrics["early"] = 0.1, 10, 1
			if tr.Block < share {
				delete(tr.Metrics, "throughput")
				tr.Outcomes = map[string]int64{"deadline": 400}
			}
		})
	}
	for _, c := range []struct {
		cut  int // blocks
		want string
	}{{0, analysis.GatePass}, {3, analysis.GateInconclusive}, {8, analysis.GateFail}} {
		gates, err := cut(c.cut).DecideGates([]string{"throughput > 30MB/s"})
		must(t, err)
		if gates[0].State != c.want {
			t.Errorf("with %d of 8 blocks cut off: %s, want %s: %+v", c.cut, gates[0].State, c.want, gates[0].Cells[0])
		}
	}
	c := compared(t, cut(0), cut(6))
	must(t, c.DecideGates([]string{"no worse than BASE by 5%"}))
	if c.Gates[0].State != analysis.GateFail {
		t.Errorf("no worse than BASE: %s: %+v", c.Gates[0].State, c.Gates[0].Cells[0])
	}
}

func compared(t *testing.T, base, other *analysis.Result) *analysis.Comparison {
	t.Helper()
	c, err := analysis.CompareRuns(base, []*analysis.Result{other}, []string{"a", "b"}, analysis.CompareOptions{})
	must(t, err)
	return c
}

// altered is a run whose trials are changed before they are judged once more.
func altered(t *testing.T, plan *experiment.Plan, r *analysis.Result, view *analysis.View, metrics []record.Metric,
	change func(*record.Trial)) *analysis.Result {
	t.Helper()
	var trials []record.Trial
	for _, x := range r.Frame.Trials {
		change(&x.Trial)
		trials = append(trials, x.Trial)
	}
	return analysed(t, plan, view, metrics, trials)
}

// simulatedAs is a simulated run without differences whose trials are changed.
func simulatedAs(t *testing.T, file string, seed uint64, change func(*record.Trial)) *analysis.Result {
	t.Helper()
	plan := simulatedPlan(t, file)
	return altered(t, plan, simulate(t, plan, seed, noises["normal"], 1, 0), retrieve.Scenario{}.View(),
		simulatedMetrics, change)
}

// Runs with too few trials are no two runs without a difference.
func TestCompareTooFew(t *testing.T) {
	few := strings.Replace(simulated, "repetitions: 8", "repetitions: 3", 1)
	same := func(*record.Trial) {}
	c := compared(t, simulatedAs(t, few, 1, same), simulatedAs(t, few, 2, same))
	if o := c.Overall[0]; o.OpenCells != 6 || o.SameCells != 0 {
		t.Errorf("%+v", o)
	}
	for _, cell := range c.Cells {
		if q := cell.Metrics["throughput"].New[0].Ratio; q.Needed != 5 || q.PHolm.Known() {
			t.Errorf("%+v", q)
		}
	}
	notes := strings.Join(c.Notes, "\n")
	if n := strings.Count(notes, "Too few trials in 6 of 6 comparisons"); n != 1 || strings.Contains(notes, "3 and 3 trials") {
		t.Errorf("%q", c.Notes)
	}
	if want := "together: throughput (6 of 6 cells); success rate (6 of 6 cells): 3 and 3 blocks"; !strings.Contains(notes, want) {
		t.Errorf("no %q in %q", want, c.Notes)
	}
}

// A cell that could not be compared may differ: that no other does is no good news.
func TestCompareSomeTooFew(t *testing.T) {
	one := simulatedPlan(t, simulated).Cells[0].ID
	few := simulatedAs(t, simulated, 2, func(tr *record.Trial) {
		if tr.Block > 1 && tr.Cell == one {
			tr.Invalid = []string{record.ReasonBoxBusy}
		}
	})
	c := compared(t, simulatedAs(t, simulated, 1, func(*record.Trial) {}), few)
	if o := c.Overall[0]; o.OpenCells == 0 || o.SameCells == 0 || c.Verdict.Tone != analysis.Neutral {
		t.Errorf("%s: %s, %+v", c.Verdict.Tone, c.Verdict.Text, o)
	}
}

// A ratio of two cells says that it is from few pairs.
func TestRatioOfFewPairs(t *testing.T) {
	for blocks, want := range map[int]bool{1: true, 3: true, 4: false} {
		r := simulatedAs(t, simulated, 1, func(tr *record.Trial) {
			if tr.Block >= blocks {
				tr.Invalid = []string{record.ReasonBoxBusy}
			}
		})
		v := r.Frame.RatioTo("throughput", r.Cells[0], r.Cells[1])
		if said := strings.HasSuffix(v.Text, fmt.Sprintf("× (n %d)", blocks)); said != want || !v.Number.Known() {
			t.Errorf("of %d pairs: %+v", blocks, v)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
