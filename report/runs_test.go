package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

const runFile = `
scenario: retrieve
systems: [nginx, boxo]
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 400}
repetitions: 8
`

// fakeRun is a run in memory.
type fakeRun struct {
	file    string // experiment; empty: runFile
	seed    uint64
	trials  int
	meta    map[string]string
	value   func(rng *rand.Rand, system, concurrency string) float64 // throughput
	trial   func(*record.Trial)
	metrics []record.Metric
}

func (f fakeRun) input(t testing.TB) *input {
	t.Helper()
	if f.file == "" {
		f.file = runFile
	}
	if f.metrics == nil {
		f.metrics = synthetic.Metrics()
	}
	plan, err := synthetic.Plan(f.file)
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	in := &input{meta: f.meta, plan: viewOf(plan), raw: raw, metrics: f.metrics}
	rng := rand.New(rand.NewPCG(f.seed, 99))
	for block := range f.trials {
		for _, c := range in.plan.Cells {
			level, _ := c.Factor("retrieve.concurrency")
			tr := record.Trial{ID: int64(len(in.trials) + 1), Cell: c.ID, Block: block, State: record.Done, Epoch: time.Unix(1_800_000_000, 0), Outcomes: map[string]int64{"ok": 400},
				Metrics: map[string]float64{"throughput": f.value(rng, c.System, level.Value)}}
			if f.trial != nil {
				f.trial(&tr)
			}
			in.trials = append(in.trials, tr)
		}
	}
	return in
}

// scattered is a throughput with a spread of 3 %, times factor for boxo.
func scattered(factor float64) func(*rand.Rand, string, string) float64 {
	return func(rng *rand.Rand, system, _ string) float64 {
		v := 100e6 * math.Exp(0.03*rng.NormFloat64())
		if system == "boxo" {
			v *= factor
		}
		return v
	}
}

func comparedRuns(t testing.TB, o RunOptions, runs ...fakeRun) *RunComparison {
	t.Helper()
	var ins []*input
	var dirs []string
	for i, r := range runs {
		ins, dirs = append(ins, r.input(t)), append(dirs, fmt.Sprintf("run%d", i))
	}
	c, err := compareInputs(ins, dirs, o)
	must(t, err)
	return c
}

func comparedText(t testing.TB, c *RunComparison) string {
	t.Helper()
	var b strings.Builder
	must(t, c.WriteText(&b, 100))
	return b.String()
}

func TestCompareRunsFindsAKnownRatio(t *testing.T) {
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 8, value: scattered(1)}, fakeRun{seed: 2, trials: 8, value: scattered(0.8)})
	if len(c.Cells) != 6 || len(c.Only)+len(c.Unlike) != 0 {
		t.Fatalf("%d cells, only %v, unlike %v", len(c.Cells), c.Only, c.Unlike)
	}
	for _, cell := range c.Cells {
		q := cell.Metrics["throughput"].New[0].Ratio
		worth := map[string]int{"boxo": -1}[cell.System]
		truth := map[string]float64{"boxo": 0.8, "nginx": 1}[cell.System]
		if q.Worth != worth || q.Shown != (worth != 0) || float64(q.Lo) > truth || float64(q.Hi) < truth {
			t.Errorf("%s, %s: %+v", cell.System, cell.Where, q)
		}
	}
	o := c.Overall[0]
	if want := math.Sqrt(0.8); o.Worse != 3 || o.NotShown != 3 || o.Cells != 6 || !o.Shown || float64(o.Lo) > want || float64(o.Hi) < want {
		t.Errorf("%+v", o)
	}
	text := comparedText(t, c)
	if first, second := strings.Index(text, "What differed"), strings.Index(text, "All cells together"); first < 0 || second < first {
		t.Errorf("what differed is not said first:\n%s", text)
	}
	if !strings.Contains(text, "× worse") || !strings.Contains(text, "~ ") {
		t.Error(text)
	}
	// Less is better of a time: the same ratio is then an improvement.
	slower := func(key string) func(*record.Trial) {
		return func(tr *record.Trial) { tr.Metrics = map[string]float64{key: tr.Metrics["throughput"] / 1e9} }
	}
	c = comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 8, value: scattered(1), trial: slower("duration_p50")}, fakeRun{seed: 2, trials: 8, value: scattered(0.8), trial: slower("duration_p50")})
	if o := c.Overall[0]; o.Metric != "duration_p50" || o.Better != 3 || o.Worse != 0 || o.Worth != 1 {
		t.Errorf("%+v", o)
	}
}

// Where nothing changed, something may be shown in at most one family of twenty.
func TestCompareRunsFalsePositives(t *testing.T) {
	const pairs = 200
	cells, over, spread := 0, 0, 0
	for i := range uint64(pairs) {
		c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1000 + i, trials: 7, value: scattered(1)}, fakeRun{seed: 5000 + i, trials: 7, value: scattered(1)})
		o := c.Overall[0]
		if o.NotShown != 6 {
			cells++
		}
		if o.Shown {
			over++
		}
		if o.Spread > 0 {
			spread++
		}
	}
	t.Logf("of %d null pairs, something was shown in %d by a cell, %d over all cells, %d by a spread", pairs, cells, over, spread)
	// Over all cells the level is 5 % by itself; 200 pairs then show up to 17 in 99 of 100 cases.
	if cells >= pairs/20 || spread >= pairs/20 || over > 17 {
		t.Errorf("of %d null pairs, something was shown in %d by a cell, %d over all cells, %d by a spread", pairs, cells, over, spread)
	}
}

func TestSpreadIsToldFromTheMedian(t *testing.T) {
	wide := func(rng *rand.Rand, system, _ string) float64 {
		if system == "boxo" {
			return 100e6 * math.Exp(0.3*rng.NormFloat64())
		}
		return scattered(1)(rng, system, "")
	}
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 16, value: scattered(1)}, fakeRun{seed: 3, trials: 16, value: wide})
	o := c.Overall[0]
	if o.Spread != 3 || o.NotShown != 6 {
		t.Errorf("%+v", o)
	}
	if text := comparedText(t, c); !strings.Contains(text, "spread ") {
		t.Error(text)
	}
}

func TestCompareRunsSaysWhatDiffers(t *testing.T) {
	meta := func(cpu, version string) map[string]string {
		return map[string]string{"plimsoll": version, "environment": `{"cpu.model":"` + cpu + `","kernel":"6.1","load":"1 2 3"}`, "systems": `{"boxo":{"version":"` + version + `"}}`}
	}
	base := fakeRun{seed: 1, trials: 6, value: scattered(1), meta: meta("old", "v1")}
	fewer := fakeRun{seed: 2, trials: 6, value: scattered(1), meta: meta("new", "v2"), file: strings.Replace(runFile, "[1, 8, 64]", "8", 1)}
	c := comparedRuns(t, RunOptions{}, base, fewer)
	if len(c.Cells) != 2 || len(c.Only) != 4 || c.Cells[0].Where != "concurrency 8" {
		t.Errorf("overlapping cells: %d, only %v, %+v", len(c.Cells), c.Only, c.Cells)
	}
	text := comparedText(t, c)
	for _, want := range []string{"machine: cpu.model old → new", "plimsoll: version v1 → v2", "system: systems.boxo.version v1 → v2", "in run0 and not in run1: nginx, concurrency 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "kernel") || strings.Contains(text, "load") {
		t.Errorf("what is the same, or of the moment, is listed:\n%s", text)
	}

	changed := base
	changed.file, changed.seed = strings.Replace(runFile, "requests: 400", "requests: 300", 1), 3
	c = comparedRuns(t, RunOptions{}, base, changed)
	if len(c.Cells) != 0 || len(c.Unlike) != 6 || len(c.Only) != 0 || len(c.Overall) != 0 {
		t.Errorf("other settings: %d cells, %d unlike, only %v", len(c.Cells), len(c.Unlike), c.Only)
	}
	if d := c.Differs[0]; d.Kind != "settings" || d.What != "retrieve.requests (6 cells)" || d.Base != "400" || d.New[0] != "300" {
		t.Errorf("%+v", d)
	}
	c = comparedRuns(t, RunOptions{Unlike: true}, base, changed)
	if len(c.Cells) != 6 || !c.Unlike[0].Compared {
		t.Errorf("asked to be compared all the same: %d cells", len(c.Cells))
	}
	// A binary elsewhere is another build of the same system.
	other := base
	other.file = strings.Replace(runFile, "boxo]", "{use: boxo, with: {binary: /opt/new}}]", 1)
	if _, err := synthetic.Plan(other.file); err == nil {
		if c = comparedRuns(t, RunOptions{}, base, other); len(c.Cells) != 6 {
			t.Errorf("another binary: %d cells", len(c.Cells))
		}
	}
}

func TestInvalidTrialsAndFewTrialsAreNotCompared(t *testing.T) {
	spoilt := func(tr *record.Trial) {
		if tr.Block > 1 {
			tr.Invalid = []string{record.ReasonBoxBusy}
			tr.Metrics["throughput"] = 1
		}
	}
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 8, value: scattered(1)}, fakeRun{seed: 2, trials: 8, value: scattered(0.5), trial: spoilt})
	for _, cell := range c.Cells {
		v := cell.Metrics["throughput"].New[0]
		if v.N != 2 || v.Ratio.Shown || v.Ratio.Warn == "" || v.Ratio.Lo.Known() {
			t.Errorf("%s: %+v", cell.Where, v)
		}
	}
	text := comparedText(t, c)
	for _, want := range []string{"trials: valid 48 of 48 → 12 of 48 (box-busy (36))", "cannot show a difference among 6 comparisons"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	none := fakeRun{seed: 2, trials: 2, value: scattered(1), trial: func(tr *record.Trial) { tr.Invalid = []string{"x"} }}
	if c = comparedRuns(t, RunOptions{}, none, none); len(c.Metrics) != 0 || !strings.Contains(comparedText(t, c), "nothing to compare") {
		t.Errorf("no valid trial: %+v", c.Metrics)
	}
}

func TestCompareSeveralRuns(t *testing.T) {
	c := comparedRuns(t, RunOptions{Metrics: []string{"throughput"}}, fakeRun{seed: 1, trials: 8, value: scattered(1)}, fakeRun{seed: 2, trials: 8, value: scattered(1.5)}, fakeRun{seed: 3, trials: 8, value: scattered(1)})
	if len(c.Overall) != 2 || c.Overall[0].Better != 3 || c.Overall[1].Better != 0 {
		t.Errorf("%+v", c.Overall)
	}
	var md, js bytes.Buffer
	must(t, c.WriteMarkdown(&md))
	must(t, c.WriteJSON(&js))
	for _, want := range []string{"### Throughput, run1: better in 3 of 6 cells; run2: no difference is shown", "| cell | system | base | new 1 |", "new 2: run2"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("%q is missing:\n%s", want, md.String())
		}
	}
	columns := 0
	for line := range strings.Lines(md.String()) {
		if n := strings.Count(line, "|") - strings.Count(line, `\|`); strings.HasPrefix(line, "|") {
			if strings.HasPrefix(line, "| metric") || strings.HasPrefix(line, "| cell") {
				columns = n
			}
			if n != columns {
				t.Errorf("a row of %d columns in a table of %d: %s", n, columns, line)
			}
		}
	}
	var back RunComparison
	must(t, json.Unmarshal(js.Bytes(), &back))
	if got := back.Cells[1].Metrics["throughput"].New[0].Ratio; got != c.Cells[1].Metrics["throughput"].New[0].Ratio {
		t.Errorf("JSON gives back %+v", got)
	}
}

// The numbers are those of benchstat.
func TestCompareAgreesWithBenchmath(t *testing.T) {
	a, b := fakeRun{seed: 1, trials: 9, value: scattered(1)}, fakeRun{seed: 2, trials: 8, value: scattered(1.04)}
	c := comparedRuns(t, RunOptions{}, a, b)
	for _, cell := range c.Cells {
		row := cell.Metrics["throughput"]
		x := benchmath.NewSample(row.Base.values, &benchmath.DefaultThresholds)
		y := benchmath.NewSample(row.New[0].values, &benchmath.DefaultThresholds)
		mx, my := benchmath.AssumeNothing.Summary(x, Confidence).Center, benchmath.AssumeNothing.Summary(y, Confidence).Center
		p := benchmath.AssumeNothing.Compare(x, y).P
		near := func(what string, got Num, want float64) {
			if math.Abs(float64(got)-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s, %s: %s is %v, benchmath says %v", cell.System, cell.Where, what, got, want)
			}
		}
		near("base", row.Base.Median, mx)
		near("new", row.New[0].Median, my)
		near("ratio", row.New[0].Ratio.Value, my/mx)
		near("p", row.New[0].Ratio.P, p)
	}
}

// Two runs of 1,000 trials on disk are compared within seconds.
func TestCompareLargeRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a run of 1,000 trials")
	}
	file := strings.Replace(runFile, "[1, 8, 64]", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50]", 1)
	in := fakeRun{file: file, value: scattered(1), trials: 10}.input(t)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, in.raw, nil, in.metrics)
	must(t, err)
	for _, tr := range in.trials {
		for j, key := range []string{"ttfb_p50", "duration_p50", "ops_rate", "system_cpu_per_gb", "system_rss_peak"} {
			tr.Metrics[key] = tr.Metrics["throughput"] * float64(j+1)
		}
		w, err := run.Begin(tr.Cell, tr.Block, false, tr.Epoch)
		must(t, err)
		must(t, w.End(tr))
	}
	must(t, run.Close())
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	begun := time.Now()
	c, err := CompareRuns(r, []*record.Reader{r}, RunOptions{})
	must(t, err)
	var b bytes.Buffer
	must(t, c.WriteText(&b, 100))
	t.Logf("two runs of %d trials, %d cells, %d metrics: %v", c.Base.Run.Done, len(c.Cells), len(c.Metrics), time.Since(begun))
	if len(c.Cells) != 100 || c.Base.Run.Done != 1000 {
		t.Errorf("%d cells, %d trials", len(c.Cells), c.Base.Run.Done)
	}
}
