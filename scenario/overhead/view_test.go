package overhead

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const file = `
scenario: overhead
title: Synthetic costs
systems: [tahoe, sftp]
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 40ms]}
data: {size: [40B, 10kB, 1MB, 10MB]}
overhead: {operation: [put, get, fill], concurrency: [1, 4], objects: 1000}
where:
  - overhead.operation != fill || data.size == 10kB && link.delay == 0s && overhead.concurrency == 1
  - overhead.concurrency == 1 || overhead.operation == put && link.delay == 0s && system == tahoe
repetitions: 6
`

// cost is the cost of a synthetic operation: seconds, round trips, bytes per second.
type cost struct{ a, rounds, rate float64 }

// truths holds the true costs of the systems' operations. In addition, tahoe's put leaves objects of
// 40 bytes at the client and otherwise sends 1.5 times as many bytes; each store takes a
// millisecond longer for every 1,000 objects, and the client keeps half of the file in memory.
var truths = map[string]map[string]cost{
	"tahoe": {"put": {0.050, 9, 5e6}, "get": {0.020, 4, 8e6}},
	"sftp":  {"put": {0.004, 3, 11e6}, "get": {0.003, 2, 11e6}},
}

// analysed returns the result of a run whose trials have these costs.
func analysed(t *testing.T, file string) *analysis.Result {
	t.Helper()
	e, err := experiment.Parse("synthetic.yaml", []byte(file), nil, experiment.Catalog{
		{Name: "tahoe", Modes: []string{"start"}},
		{Name: "sftp", Modes: []string{"start"}, Baseline: true}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, raw, map[string]string{"plimsoll": "test"}, Scenario{}.Metrics())
	must(t, err)
	rng, begun, stored := rand.New(rand.NewPCG(11, 11)), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		map[string]float64{}
	for block := range plan.Blocks {
		for _, i := range rng.Perm(len(plan.Cells)) {
			begun = begun.Add(time.Second)
			c := plan.Cells[i]
			trial, check := trialOf(c, rng, stored)
			w, err := run.Begin(c.ID, block, false, begun)
			must(t, err)
			must(t, w.Link(check))
			took := int64(trial.Metrics["duration_p50"] * 1e9)
			must(t, w.Ops([]record.Op{{Kind: record.OpPut, Length: int64(c.Data.Size), Bytes: int64(c.Data.Size),
				FirstByte: took / 2, LastByte: took}}))
			must(t, w.End(trial))
		}
	}
	must(t, run.Close())
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	f, err := analysis.Load(r, plan, Scenario{}.View(), nil)
	must(t, err)
	res, err := analysis.Analyse(f)
	must(t, err)
	return res
}

func trialOf(c experiment.Cell, rng *rand.Rand, stored map[string]float64) (record.Trial, record.LinkCheck) {
	noise := func(v, cv float64) float64 { return v * math.Exp(cv*rng.NormFloat64()) }
	rtt := noise(max(2*c.Link.Delay.Seconds(), 0.0003), 0.003)
	check := record.LinkCheck{From: c.System, To: "client", Emulator: "netem", WantRTT: 2 * c.Link.Delay.Seconds(),
		RTT: rtt, WantRate: 95e6,
		Rate: 95e6, Loss: math.NaN(), Tolerance: 0.05, OK: true}
	size, op, tahoe, fill := float64(c.Data.Size), c.Overhead.Operation, c.System == "tahoe",
		c.Overhead.Operation == "fill"
	if fill {
		op = "put"
	}
	k := truths[c.System][op]
	took, wire, expansion := k.a+k.rounds*rtt+size/k.rate, size+3000, 1.0
	if tahoe && op == "put" {
		if expansion = 1.5; size <= 40 {
			took, wire = 0.0012, 12
		}
	}
	m := map[string]float64{"success_rate": 1, "duration_p50": noise(took, 0.02), "wire_bytes": expansion * wire,
		"ops_rate": 1 / took}
	trial := record.Trial{State: record.Done, Seconds: took, Metrics: m}
	if op == "put" {
		m["expansion"] = expansion
		for name, keeps := range map[string]float64{"client-1": 0.5, "storage-1": 0, "storage-2": 0} {
			peak := 80e6 + keeps*size*float64(c.Overhead.Concurrency)
			if !tahoe {
				peak = 80e6
			}
			for kind, v := range map[string]float64{record.DetailRSSStart: 80e6,
				record.DetailRSSPeak: noise(peak, 0.0002)} {
				trial.Details = append(trial.Details, record.Detail{Kind: kind, Name: c.System + "/" + name, Value: v})
			}
		}
	}
	if fill {
		stored[c.System] += 1000
		m["stored_objects"], m["put_p50"], m["get_p50"] = stored[c.System], noise(took, 0.002), noise(0.02, 0.002)
		if tahoe {
			m["put_p50"] += 1e-3 * stored[c.System] / 1000
		}
	}
	return trial, check
}

// within reports whether truth is in an interval twice as wide as that of v, since one in twenty
// intervals misses it, and whether that of v is narrow.
func within(v analysis.Value, truth float64) bool {
	return float64(2*v.Lo-v.Number) <= truth && truth <= float64(2*v.Hi-v.Number) && float64(v.Hi-v.Lo) < 0.5*truth
}

func TestSyntheticRun(t *testing.T) {
	r := analysed(t, file)
	t.Run("costs are found", func(t *testing.T) { testCosts(t, r) })
	t.Run("only what crosses the link is compared", func(t *testing.T) { testAlike(t, r) })
	t.Run("memory and objects", func(t *testing.T) { testMemoryAndObjects(t, r) })
}

// If neither the round trip nor the size varied, A cannot be separated from the duration.
func TestOneSizeAndOneDelay(t *testing.T) {
	one := strings.NewReplacer("[0s, 40ms]", "40ms", "[40B, 10kB, 1MB, 10MB]", "10kB").Replace(file)
	costs := analysed(t, one).Table("cost")
	if len(costs.Rows) == 0 {
		t.Fatal("nothing is fitted")
	}
	for i := range costs.Rows {
		for _, key := range []string{"a", "rounds", "b"} {
			if v := costs.Get(i, key); v.Number.Known() && v.Number != 0 {
				t.Errorf("%s, %s: %s = %v", costs.Get(i, "system").Text, costs.Get(i, "operation").Text, key, v.Number)
			}
		}
	}
}

func testCosts(t *testing.T, r *analysis.Result) {
	costs := r.Table("cost")
	if len(costs.Rows) != 4 {
		t.Fatalf("%d operations are fitted, want 4", len(costs.Rows))
	}
	for i := range costs.Rows {
		system, op := costs.Get(i, "system").Text, costs.Get(i, "operation").Text
		truth := truths[system][op]
		for key, want := range map[string]float64{"a": truth.a, "rounds": truth.rounds, "rate": truth.rate,
			"b": 1 / truth.rate} {
			if v := costs.Get(i, key); !within(v, want) {
				t.Errorf("%s, %s: %s = %v (%v–%v), want %v", system, op, key, v.Number, v.Lo, v.Hi, want)
			}
		}
		if holds := costs.Get(i, "holds").Text; holds != "yes" {
			t.Errorf("%s, %s: the model holds: %s", system, op, holds)
		}
		if from, local := costs.Get(i, "from").Number, system == "tahoe" && op == "put"; local != (from == 10_000) ||
			local != costs.Get(i, "stays").Number.Known() {
			t.Errorf("%s, %s: fitted from %v on", system, op, from)
		}
		if against := costs.Get(i, "against").Number; (system == "tahoe") != (against > 1.2) {
			t.Errorf("%s, %s: %v times the baseline", system, op, against)
		}
	}
}

func testAlike(t *testing.T, r *analysis.Result) {
	for _, c := range r.Cells {
		if c.System != "tahoe" || c.Plan.Overhead.Concurrency > 1 {
			continue
		}
		local := c.Plan.Data.Size == 40 && c.Plan.Overhead.Operation == "put"
		if q, has := c.Ratios["duration_p50"]; has == local {
			t.Errorf("%s of %v: ratio %v", c.Plan.Overhead.Operation, c.Plan.Data.Size, q.Value)
		}
	}
}

func testMemoryAndObjects(t *testing.T, r *analysis.Result) {
	memory := r.Table("memory")
	for i := range memory.Rows {
		name := memory.Get(i, "system").Text + " " + memory.Get(i, "process").Text
		grows, slope := memory.Get(i, "grows").Text, memory.Get(i, "growth")
		if want := map[bool]string{true: "yes", false: "no"}[name == "tahoe client"]; grows != want {
			t.Errorf("%s grows: %s, want %s", name, grows, want)
		}
		if name == "tahoe client" && !within(slope, 0.5) {
			t.Errorf("it keeps %v (%v–%v) of each byte, want 0.5", slope.Number, slope.Lo, slope.Hi)
		}
		if several := memory.Get(i, "at_once").Number; (several == 4) != (memory.Get(i, "system").Text == "tahoe") {
			t.Errorf("%s: %v uploads at once", name, several)
		}
	}
	objects := r.Table("objects")
	for i := range objects.Rows {
		slow := objects.Get(i, "system").Text == "tahoe" && objects.Get(i, "operation").Text == "put"
		if change := objects.Get(i, "change").Text; (change == "slower") != slow {
			t.Errorf("%s, %s: %s", objects.Get(i, "system").Text, objects.Get(i, "operation").Text, change)
		}
		if v := objects.Get(i, "slope"); slow && !within(v, 1e-3) {
			t.Errorf("%v (%v–%v) s per 1,000 objects, want 1 ms", v.Number, v.Lo, v.Hi)
		}
	}
	for rule, want := range map[string]bool{"memory-grows": true, "objects-slope": true, "model": false} {
		if r.Found(rule) != want {
			t.Errorf("rule %s fired: %v", rule, !want)
		}
	}
	if len(memory.Rows) != 4 || len(objects.Rows) != 4 {
		t.Errorf("%d kinds of process, %d slopes", len(memory.Rows), len(objects.Rows))
	}
}

// The verdict of a run of one system contains the costs of its operations, even if the system is a
// baseline.
func TestVerdictOfOneSystem(t *testing.T) {
	r := analysed(t, strings.NewReplacer("[tahoe, sftp]", "[sftp]", "baseline: sftp\n", "", " && system == tahoe", "").
		Replace(file))
	if r.Baseline != "" || !strings.Contains(r.Verdict.Text, "put takes 3.0") ||
		!strings.Contains(r.Verdict.Text, "get takes 1.99") {
		t.Errorf("baseline %q, verdict %q", r.Baseline, r.Verdict.Text)
	}
	v := r.Table("cost").Get(0, "rounds")
	if v.Text != "" || !v.Number.Known() {
		t.Errorf("rounds %+v", v)
	}
}

// Numbers derived from intervals that reach 0 are unknown.
func TestNoNumberWhereTheIntervalSaysNothing(t *testing.T) {
	head := []analysis.TableColumn{{Key: "a", Unit: "s", Positive: true}, {Key: "slope", Unit: "s"}}
	for _, c := range []struct {
		lo, hi analysis.Num
		none   bool
	}{
		{-0.148, 0.394, true}, {1e-9, 98117, true}, {0.08, analysis.Unknown, true},
		{0.1, 0.14, false}, {analysis.Unknown, analysis.Unknown, false},
	} {
		t1, v := analysis.Table{Head: head}, analysis.Value{Number: 0.123, Lo: c.lo, Hi: c.hi}
		t1.Add(v, v)
		if a, slope := t1.Get(0, "a"), t1.Get(0, "slope"); (a.Text == analysis.NotResolved) != c.none || slope.Text != "" {
			t.Errorf("%v–%v: %+v, %+v", c.lo, c.hi, a, slope)
		}
	}
}
