package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// truthful checks that each answer of a system is near the truth, in an interval
// that is not wide.
func truthful(t *testing.T, a Predicted, truth float64) {
	t.Helper()
	if a.Refused != "" {
		t.Errorf("%s, %s is refused: %s", a.System, a.What, a.Refused)
		return
	}
	if !(float64(a.Trial.Lo) < truth && truth < float64(a.Trial.Hi)) || a.Trial.Hi/a.Trial.Lo > 2 || a.Cells == 0 {
		t.Errorf("%s, %s: %+v of %d cells, the truth is %g", a.System, a.What, a.Trial, a.Cells, truth)
	}
}

// refusals asks for what must be refused.
func refusals(t *testing.T, dir string, cases map[string]string) {
	t.Helper()
	for set, want := range cases {
		p, err := predicted(t, dir, strings.Fields(set)...)
		must(t, err)
		for _, a := range p.Answers {
			if !strings.Contains(a.Refused, want) || !p.Refused() || !strings.HasPrefix(p.Try, "plimsoll run EXPERIMENT --set ") {
				t.Errorf("%s: %s, %s: %q, want %q (try %q)", set, a.System, a.What, a.Refused, want, p.Try)
			}
		}
	}
}

func believable(t *testing.T, dir string, least int) {
	t.Helper()
	run, err := record.Open(dir)
	must(t, err)
	defer run.Close()
	p, err := CheckPredictions(run)
	must(t, err)
	cells, inside := 0, 0
	for _, c := range p.Checks {
		if c.Refused == "" {
			cells, inside = cells+c.Cells, inside+c.Inside
		}
	}
	if cells < least || inside < cells*8/10 {
		t.Errorf("%d of %d cells are in their intervals", inside, cells)
	}
}

const syncPredictFile = `
scenario: sync
title: Synthetic sync, five factors
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync:
  blocks: 3000
  peers: [2, 4, 8, 16]
  storage: [disk, ram]
  vary:
    timeouts:
      - default: {send_blocks_timeout: 120s, send_block_timeout: 60s}
      - short: {send_blocks_timeout: 10s, send_block_timeout: 10s}
    subscriber: [full, none]
repetitions: 4
warmup: 0
`

// ledgerPeers is what the number of peers does: the square root of them.
func ledgerPeers(c *experiment.Cell, _ int, f *newcomer) {
	f.serve *= math.Pow(float64(c.Sync.Peers)/4, -0.5)
	f.chain = f.first + (f.serve-f.first)*0.9
}

// Configurations that were not executed are predicted as the truth has them: those
// that a partial run lacks, and numbers of peers between those of the run.
func TestConfigurationsAreForetold(t *testing.T) {
	t.Parallel()
	left := func(c *experiment.Cell) bool {
		return is(c, "sync.storage", "ram") && is(c, "sync.vary.subscriber", "none") && is(c, "sync.peers", "8")
	}
	dir := syncTruth{file: syncPredictFile, node: ledgerPeers, only: func(c *experiment.Cell) bool { return !left(c) }}.write(t)
	for set, truth := range map[string]float64{
		"sync.peers=8 sync.storage=ram sync.vary.subscriber=none": syncDefault * truthNone * math.Sqrt(0.5),
		"sync.peers=6 sync.vary.timeouts=short":                   syncDefault * truthTimeouts * math.Sqrt(4.0/6),
	} {
		p, err := predicted(t, dir, strings.Fields(set)...)
		must(t, err)
		if len(p.Answers) != 1 || len(p.Asked) != 4 {
			t.Fatalf("%s: %+v: what is not said is the default", set, p)
		}
		truthful(t, p.Answers[0], truth)
	}
	refusals(t, dir, map[string]string{
		"sync.peers=32":                  "peers is outside of what was run, 2 to 16",
		"sync.peers=4 sync.blocks=6000":  "did not vary in this run",
		"sync.peers=4 link.rate=100Mbit": "did not vary in this run (it was 50 Mbit/s)",
	})
	believable(t, dir, 20)
}

// Half of a design mixes interactions with each other: what depends on them is
// refused. So is what too few cells test, and a law of more than two factors.
func TestConfigurationsThatCannotBeTold(t *testing.T) {
	half := func(c *experiment.Cell) bool {
		n := 0
		for _, l := range []string{"sync.storage=ram", "sync.vary.subscriber=none", "sync.vary.timeouts=short", "sync.peers=8"} {
			path, value, _ := strings.Cut(l, "=")
			if is(c, path, value) {
				n++
			}
		}
		return n%2 == 0
	}
	two := strings.Replace(syncPredictFile, "[2, 4, 8, 16]", "[4, 8]", 1)
	refusals(t, syncTruth{file: two, only: half, node: func(c *experiment.Cell, _ int, f *newcomer) { f.serve /= syncTruthOf(c) / syncDefault }}.write(t),
		map[string]string{"sync.storage=ram": "which these trials cannot tell from other effects"})
	refusals(t, syncTruth{only: func(c *experiment.Cell) bool {
		return !(is(c, "sync.storage", "ram") && is(c, "sync.vary.subscriber", "none") && is(c, "sync.vary.timeouts", "short"))
	}}.write(t), map[string]string{"sync.storage=ram sync.vary.subscriber=none sync.vary.timeouts=short": "none is left to test it with"})
}

const swarmPredictFile = `
scenario: disseminate
title: Synthetic swarms
systems: [deluge]
baseline: deluge
link: {rate: 100Mbit, delay: 10ms}
data: {size: [2MiB, 8MiB, 32MiB]}
disseminate: {nodes: [3, 5, 9, 17], seeders: 1}
repetitions: 4
warmup: 0
`

// swarmPace is the law of the synthetic swarms: slower with more nodes.
func swarmPace(nodes float64) float64 { return math.Pow(nodes/8, 0.2) }

func slowed(c *experiment.Cell, _ int, _ float64, all []leech) {
	for i := range all {
		all[i].took *= swarmPace(float64(c.Disseminate.Nodes))
	}
}

func TestSwarmsAreForetold(t *testing.T) {
	t.Parallel()
	dir := swarmTruth{file: swarmPredictFile, leechers: slowed}.write(t)
	p, err := predicted(t, dir, "disseminate.nodes=12", "data.size=16MiB")
	must(t, err)
	if len(p.Answers) != 2 {
		t.Fatalf("%+v", p.Answers)
	}
	rate := 100e6 * 0.949
	line := experiment.FluidBound(16<<20, []float64{rate}, repeat(rate, 11), repeat(rate, 11))
	for _, a := range p.Answers {
		if math.Abs(float64(a.Line)/line-1) > 0.01 {
			t.Errorf("%s: the line is %v, want %v", a.System, a.Line, line)
		}
		if a.What == "last leecher" {
			truthful(t, a, line*1.2*swarmPace(12))
		} else if a.Refused != "" || a.Trial.Value > 1.3*Num(line) {
			t.Errorf("%+v", a)
		}
	}
	refusals(t, dir, map[string]string{
		"disseminate.nodes=24 data.size=8MiB":                "nodes is outside of what was run, 3 to 17",
		"disseminate.nodes=9 data.size=1GiB":                 "size is outside of what was run",
		"disseminate.nodes=9 data.size=8MiB link.rate=1Gbit": "did not vary in this run",
		"disseminate.nodes=9 data.size=8MiB link.delay=50ms": "did not vary in this run",
	})
	if _, err := predicted(t, dir, "disseminate.nodes=12"); err == nil || !strings.Contains(err.Error(), "data.size varies in this run") {
		t.Errorf("%v", err)
	}
	believable(t, dir, 20)

	run, err := record.Open(dir)
	must(t, err)
	defer run.Close()
	all, err := Predict(run, Combinations([]string{"disseminate.nodes=6,12,100", "data.size=8MiB"})...)
	must(t, err)
	var text, raw bytes.Buffer
	must(t, WritePredictions(&text, all, 100))
	for _, want := range []string{"Size 8 MiB, from the models of", "nodes  system", "\n      6  deluge", "no prediction for deluge, last leecher (100): ", "to measure it: plimsoll run EXPERIMENT --set disseminate.nodes=100"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	must(t, WritePredictionsJSON(&raw, all))
	var back []Prediction
	must(t, json.Unmarshal(raw.Bytes(), &back))
	if len(back) != 3 || len(back[2].Answers) != 2 || back[2].Answers[0].Refused == "" {
		t.Errorf("%+v", back)
	}
}

func repeat(v float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

const retrievePredictFile = `
scenario: retrieve
title: Synthetic requests
systems: [nginx, boxo]
baseline: nginx
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 4, 8, 16, 32], range: 1MiB, requests: 200}
repetitions: 5
limits: {deadline: 20s}
`

func TestRequestsAreForetold(t *testing.T) {
	t.Parallel()
	dir, _ := synthetic.Run{File: retrievePredictFile}.Write(t)
	p, err := predicted(t, dir, "retrieve.concurrency=6")
	must(t, err)
	if len(p.Answers) != 4 {
		t.Fatalf("%+v", p.Answers)
	}
	// nginx fills 97 % of the link, which six requests do; boxo has a rate of its own.
	for _, a := range p.Answers {
		if a.What == "duration" && (a.Refused == "" && !strings.Contains(a.Model, "load line") || a.Line.Known()) {
			t.Errorf("%s: a median duration beside the line of a mean, %v (%s, %s)", a.System, a.Line, a.Model, a.Refused)
		}
		if a.What == "throughput" {
			truthful(t, a, map[string]float64{"nginx": 0.97 * 0.949 * 1e9 / 8, "boxo": 45e6}[a.System])
			if model := map[string]string{"nginx": "power laws of factors, beside the load line", "boxo": "universal scalability law"}[a.System]; a.Model != model || !(a.Line > a.Trial.Value) {
				t.Errorf("%s: %q, line %v", a.System, a.Model, a.Line)
			}
		}
	}
	checkedRequests(t, dir)
	refusals(t, dir, map[string]string{
		"retrieve.concurrency=64":                 "outside of what was run, 1 to 32",
		"retrieve.concurrency=6 link.rate=10Gbit": "did not vary in this run (it was 1 Gbit/s)",
		"retrieve.concurrency=6 link.delay=80ms":  "did not vary in this run",
	})
}

// checkedRequests checks that both models of a system's throughput are held against one
// number of each cell, and that each has a name of its own.
func checkedRequests(t *testing.T, dir string) {
	t.Helper()
	run, err := record.Open(dir)
	must(t, err)
	defer run.Close()
	p, err := CheckPredictions(run)
	must(t, err)
	measured, names := map[string]Num{}, map[string]bool{}
	for _, c := range p.Checks {
		if name := c.System + ", " + p.named(&c); names[name] {
			t.Errorf("two models are called %s", name)
		} else {
			names[name] = true
		}
		for _, h := range c.Held {
			key := c.Unit + h.Cell
			if was, ok := measured[key]; ok && math.Abs(float64(was/h.Measured)-1) > 1e-12 {
				t.Errorf("%s: %v was measured of %s, %v in another model", c.What, h.Measured, h.Cell, was)
			}
			measured[key] = h.Measured
		}
	}
	var b bytes.Buffer
	must(t, p.WriteText(&b, 100))
	for _, want := range []string{"throughput (scalability law)", "throughput (power laws)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The page shows how well the models predict, each cell beside its prediction.
func TestThePageShowsHeldOutCells(t *testing.T) {
	t.Parallel()
	r := swarmTruth{file: swarmPredictFile, leechers: slowed}.build(t)
	f := r.Figures[len(r.Figures)-1]
	if f.ID != "foretold" || len(f.Panels) != 2 || len(f.Table.Rows) < 16 || !strings.Contains(f.N, "lie in their intervals; ask with: plimsoll predict run --set") {
		t.Fatalf("%s: %d panels, %d rows, %s", f.ID, len(f.Panels), len(f.Table.Rows), f.N)
	}
	// Models that are all refused are not drawn.
	calm := swarmTruth{}.build(t)
	if last := calm.Figures[len(calm.Figures)-1]; last.ID == "foretold" {
		t.Errorf("predictions from two cells: %+v", last.Table.Rows)
	}
}

const slowSwarmFile = `
scenario: disseminate
title: Synthetic swarms with slow leechers
systems: [deluge]
baseline: deluge
link: {rate: 100Mbit, delay: 10ms}
data: {size: [2MiB, 8MiB, 32MiB]}
disseminate: {nodes: [5, 9, 17], seeders: 1, slow: 25%, slow_down: 20Mbit}
repetitions: 4
warmup: 0
`

// slowAreLast lets the leechers with fast links be done at the line of half of them.
func slowAreLast(c *experiment.Cell, _ int, line float64, all []leech) {
	half := c.LoadLineOf(scenario.MedianLeecher(len(all)), func(wire float64) float64 { return 0.949 * wire })
	for i := range all {
		if i >= experiment.SlowLeechers(len(all), c.Disseminate.Slow) {
			all[i].took *= half / line
		}
	}
}

// A median leecher does not wait for the slow ones: it is predicted as a ratio to
// the line of half of the leechers, which is shown beside it.
func TestMedianLeechersHaveALineOfTheirOwn(t *testing.T) {
	dir := swarmTruth{file: slowSwarmFile, leechers: slowAreLast}.write(t)
	p, err := predicted(t, dir, "disseminate.nodes=13", "data.size=16MiB")
	must(t, err)
	rate := 100e6 * 0.949
	downs := append(repeat(rate/5, 3), repeat(rate, 9)...)
	for _, a := range p.Answers {
		n := map[string]int{"median leecher": 6, "last leecher": 12}[a.What]
		line := experiment.FluidBoundOf(n, 16<<20, []float64{rate}, repeat(rate, 12), downs)
		if a.Refused != "" || math.Abs(float64(a.Line)/line-1) > 0.01 || a.Trial.Value < a.Line || a.Trial.Value > 1.4*a.Line {
			t.Errorf("%s: %v beside a line of %v, which is %v (%s)", a.What, a.Trial.Value, a.Line, line, a.Refused)
		}
	}
}
