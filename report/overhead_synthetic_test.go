package report

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
)

const overheadFile = `
scenario: overhead
title: Synthetic costs
systems:
  - {use: tahoe, with: {needed: 2, total: 3}}
  - sftp
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 5ms, 20ms, 40ms]}
data: {size: [40B, 1kB, 10kB, 100kB, 1MB, 10MB]}
overhead: {operation: [put, get, fill], concurrency: [1, 4], objects: 1000, longest: 5m}
where:
  - overhead.operation != fill || data.size == 1kB && link.delay == 0s && overhead.concurrency == 1
  - overhead.concurrency == 1 || overhead.operation == put && link.delay == 0s && system == tahoe
repetitions: 6
`

// truth is what a synthetic operation costs.
type truth struct {
	a, rounds, rate float64
}

// truths are the costs of the systems' operations; objects of up to 55 bytes
// never leave tahoe's client.
var truths = map[string]map[string]truth{
	"tahoe": {"put": {0.050, 9, 5e6}, "get": {0.020, 4, 8e6}},
	"sftp":  {"put": {0.004, 3, 11e6}, "get": {0.003, 2, 11e6}},
}

const (
	truthInline    = 55   // bytes
	truthExpansion = 1.5  // of tahoe
	truthMemory    = 0.5  // bytes of the client's memory for each file byte
	truthSlope     = 1e-3 // seconds per 1000 objects, of tahoe's put
)

// costs says what a synthetic run of the scenario overhead is to contain.
type costs struct {
	file   string
	noLink bool // no link was measured
}

// plan is that of the synthetic experiment.
func (s costs) plan(t testing.TB) *experiment.Plan {
	t.Helper()
	if s.file == "" {
		s.file = overheadFile
	}
	options := []experiment.OptionSpec{{Name: "needed", Type: "int"}, {Name: "total", Type: "int"}}
	e, err := experiment.Parse("synthetic.yaml", []byte(s.file), nil, experiment.Catalog{
		{Name: "tahoe", Modes: []string{"start"}, Options: options},
		{Name: "sftp", Modes: []string{"start"}, Baseline: true}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

var costsBegun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// each makes every trial of a plan from known truths, all from one seed.
func (s costs) each(plan *experiment.Plan, do func(c experiment.Cell, t record.Trial, l record.LinkCheck)) {
	rng := rand.New(rand.NewPCG(11, 11))
	n := 0
	stored := map[string]float64{}
	for block := range plan.Blocks {
		for _, i := range rng.Perm(len(plan.Cells)) {
			n++
			trial, check := s.made(plan.Cells[i], rng, stored)
			trial.ID, trial.Block, trial.Cell, trial.Epoch = int64(n), block, plan.Cells[i].ID,
				costsBegun.Add(time.Duration(n)*time.Second)
			do(plan.Cells[i], trial, check)
		}
	}
}

// write makes a run directory.
func (s costs) write(t testing.TB) string {
	t.Helper()
	plan := s.plan(t)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, raw,
		map[string]string{"plimsoll": "v0.0.0-test", "environment": `{"kernel":"6.1.0","cpu.count":"2"}`},
		overhead.Scenario{}.Metrics())
	must(t, err)
	must(t, run.Event(record.Event{At: costsBegun, Kind: "phase", What: "run begins"}))
	s.each(plan, func(c experiment.Cell, trial record.Trial, check record.LinkCheck) {
		w, err := run.Begin(c.ID, trial.Block, false, trial.Epoch)
		must(t, err)
		if !s.noLink {
			must(t, w.Link(check))
		}
		var ops []record.Op
		for i := range 5 {
			took := trial.Metrics["duration_p50"]
			start := int64(float64(i) * took * 1e9)
			size := int64(c.Data.Size)
			ops = append(ops, record.Op{Kind: record.OpPut, Length: size, Bytes: size, Intended: start, Start: start,
				FirstByte: start + int64(took*0.9e9), LastByte: start + int64(took*1e9)})
		}
		must(t, w.Ops(ops))
		must(t, w.End(trial))
	})
	must(t, run.Event(record.Event{At: costsBegun.Add(time.Hour), Kind: "phase", What: "run ends"}))
	must(t, run.Close())
	return dir
}

// made is one trial of a cell, with the link as it was measured.
func (s costs) made(c experiment.Cell, rng *rand.Rand, stored map[string]float64) (record.Trial, record.LinkCheck) {
	noise := func(cv float64) float64 { return math.Exp(cv * rng.NormFloat64()) }
	want := 2 * c.Link.Delay.Seconds()
	rtt := max(want, 0.0003) * noise(0.003)
	check := record.LinkCheck{From: c.System, To: "client", Emulator: "netem", Congestion: "cubic", WantRTT: want,
		RTT: rtt, RTTP99: rtt * 1.1, WantRate: 95e6, Rate: 95e6 * noise(0.002),
		Loss: math.NaN(), Lateness: 0.0002, Tolerance: 0.05, OK: true}
	size, op, tahoe := float64(c.Data.Size), c.Overhead.Operation, c.System == "tahoe"
	fill := op == "fill"
	if fill {
		op = "put"
	}
	cost := truths[c.System][op]
	took := cost.a + cost.rounds*rtt + size/cost.rate
	wire := 1.03*size + 3000
	if tahoe && op == "put" {
		wire *= truthExpansion
	}
	if tahoe && op == "put" && size <= truthInline {
		took, wire = 0.0012, 12
	}
	took *= noise(0.02)
	trial := record.Trial{State: record.Done, Seconds: 5 * took,
		Metrics: map[string]float64{"success_rate": 1, "duration_p50": took, "throughput": size / took,
			"wire_bytes": wire, "system_cpu_per_op": 0.01 * noise(0.05), "others_busy": 0.01}}
	if op == "get" {
		trial.Metrics["first_byte_p50"] = took - size/cost.rate
	} else {
		expansion := 1.0
		if tahoe {
			expansion = truthExpansion + 2000/size
		}
		trial.Metrics["expansion"], trial.Metrics["absolute_per_op"] = expansion, expansion*size
		trial.Metrics["disk_per_byte"] = math.Ceil(expansion*size/4096) * 4096 / size
		at := float64(c.Overhead.Concurrency)
		// The order is fixed, and so which trial gets which noise.
		for i, name := range []string{"client-1", "storage-1", "storage-2"} {
			rest := []float64{87e6, 85e6, 85e6}[i]
			peak := rest + 2e5
			if name == "client-1" {
				peak += truthMemory * size * at
			}
			for kind, v := range map[string]float64{record.DetailRSSStart: rest, record.DetailPSSStart: 0.6 * rest,
				record.DetailRSSRest: rest * noise(0.0005), record.DetailPSSRest: 0.6 * rest * noise(0.0005),
				record.DetailRSSPeak: peak * noise(0.0005)} {
				trial.Details = append(trial.Details, record.Detail{Kind: kind, Name: c.System + "/" + name, Value: v})
			}
		}
		if tahoe && !fill && size > truthInline {
			trial.Details = append(trial.Details,
				record.Detail{Kind: record.DetailPhase, Name: "peer selection", Value: (0.01 + 2*rtt) * noise(0.02)},
				record.Detail{Kind: record.DetailPhase, Name: "encode and push",
					Value: (0.03 + 6*rtt + size/cost.rate) * noise(0.02)},
				record.Detail{Kind: record.DetailPhase, Name: "send hashes and close",
					Value: (0.005 + rtt) * noise(0.02)})
		}
	}
	if fill {
		stored[c.System] += 1000
		mid := stored[c.System] - 500
		slope := 0.0
		if tahoe {
			slope = truthSlope
		}
		trial.Metrics["stored_objects"], trial.Metrics["entries_per_object"], trial.Metrics["inodes_per_object"] = mid,
			6, 9
		for i, key := range []string{"put_p50", "get_p50", "stat_p50"} {
			trial.Metrics[key] = []float64{took + slope*mid/1000, 0.02, 0.004}[i] * noise(0.002)
		}
	}
	return trial, check
}
