// Package synthetic makes run directories of experiments that were not executed, for
// tests of what reads them: the numbers in them are known, and the same each time.
package synthetic

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// Plan is the plan of an experiment file whose systems are nginx and boxo.
func Plan(file string) (*experiment.Plan, error) {
	e, err := experiment.Parse("synthetic.yaml", []byte(file), nil, experiment.Catalog{
		{Name: "nginx", Modes: []string{"start"}, Baseline: true, Can: []string{"http"}},
		{Name: "boxo", Modes: []string{"start"}, Can: []string{"http"}},
	})
	if err != nil {
		return nil, err
	}
	return e.Plan()
}

// Create makes a run directory with the plan of an experiment file.
func Create(t testing.TB, file string) (dir string, run *record.Run, plan *experiment.Plan) {
	t.Helper()
	plan, err := Plan(file)
	systemtest.Must(t, err)
	raw, err := plan.Marshal()
	systemtest.Must(t, err)
	dir = filepath.Join(memory(t), "run")
	run, err = record.Create(dir, raw,
		map[string]string{"plimsoll": "v0.0.0-test", "command": "plimsoll run synthetic.yaml",
			"environment": `{"kernel":"6.1.0","cpu.count":"2","cpu.model":"Synthetic <CPU> & Sons",` +
				`"load":"0.10 0.12 0.09 1/123 4567"}`,
			"systems": `{"nginx":{"version":"1.22.1"},"boxo":{"version":"v0.39.0"}}`}, retrieve.Scenario{}.Metrics())
	systemtest.Must(t, err)
	return dir, run, plan
}

// memory is a directory in memory, where there is one: each trial that ends is written to the
// disk at once, and what a disk keeps is tested elsewhere.
func memory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "plimsoll-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Write makes a run directory through record's own writer, all of it from one
// seed: the same file gives the same directory.
func Write(t testing.TB, file string) (dir string) {
	t.Helper()
	dir, run, plan := Create(t, file)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	systemtest.Must(t, run.Event(record.Event{At: at, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(7, 7))
	for block := range plan.Blocks {
		for _, cell := range rng.Perm(len(plan.Cells)) {
			trial(t, run, plan.Cells[cell], block, at, rng)
			at = at.Add(10 * time.Second)
		}
	}
	systemtest.Must(t, run.Event(record.Event{At: at, Kind: "phase", What: "run ends"}))
	systemtest.Must(t, run.Close())
	return dir
}

// trial simulates a fair-shared link: at most the link's rate for all.
func trial(t testing.TB, run *record.Run, c experiment.Cell, block int, epoch time.Time, rng *rand.Rand) {
	w, err := run.Begin(c.ID, block, false, epoch)
	systemtest.Must(t, err)
	noise := func(cv float64) float64 { return math.Exp(cv * rng.NormFloat64()) }
	rate, rtt := float64(c.Link.Rate)/8*0.949, 2*time.Duration(c.Link.Delay).Seconds()
	measured := rate * noise(0.002)
	link := record.LinkCheck{From: c.System, To: "client", Emulator: "netem", Congestion: "cubic", WantRTT: rtt,
		RTT: rtt * noise(0.003), RTTP99: rtt * 1.04,
		WantRate: rate * 8, Rate: measured * 8, Loss: math.NaN(), Lateness: 0.0002, Tolerance: 0.05, OK: true}
	systemtest.Must(t, w.Link(link))
	conc, size := float64(c.Retrieve.Concurrency), float64(c.Retrieve.Range)
	each := max(rtt+size/measured, conc*size/measured) * noise(0.015)
	if c.System == "boxo" {
		each *= 1.2
	}
	ops, end := operations(c, rtt, each, rng)
	systemtest.Must(t, w.Ops(ops))
	for sec := range int(end) + 1 {
		at := time.Duration(sec) * time.Second
		systemtest.Must(t, w.Samples([]record.Sample{{Start: at, End: at + time.Millisecond, Process: c.System + "/server",
			Role: "system", PID: 100, CPU: 0.2 * float64(sec), RSS: 3e7}}))
	}
	unknown := math.NaN()
	systemtest.Must(t, w.End(record.Trial{Seconds: end, Notes: []string{"receive: verify", "protocol: http/1.1"},
		Metrics: retrieve.Scenario{}.Measure(scenario.Measured{
			Cell: c, Summary: w.Summary(), Link: &link,
			Load: scenario.Load{Seconds: end, CPU: 0.3 * end * noise(0.03), RSSPeak: (22e6 + 4e4*conc) * noise(0.01)},
			Usage: scenario.Usage{SystemCPU: 0.2 * end * noise(0.03), SystemRSSPeak: (9e6 + 1e5*conc) * noise(0.01),
				OthersBusy: 0.02 * noise(0.2), HarnessCPU: unknown, BoxCPU: unknown, EmulatorCPU: unknown,
				EmulatorThread: unknown, BusiestCPU: unknown, IOPressure: unknown},
		})}))
}

// operations are those of a trial in which each takes about so many seconds, and when the last ends.
func operations(c experiment.Cell, rtt, each float64, rng *rand.Rand) (ops []record.Op, end float64) {
	noise := func(cv float64) float64 { return math.Exp(cv * rng.NormFloat64()) }
	conc, size := c.Retrieve.Concurrency, int64(c.Retrieve.Range)
	for i := range int(c.Retrieve.Requests) {
		start := float64(i/conc) * each
		op := record.Op{Kind: record.OpRange, Status: 206, Worker: uint32(i % conc), Offset: int64(i) << 16,
			Length: size, Bytes: size, Intended: int64(start * 1e9), Start: int64(start * 1e9),
			FirstByte: int64((start + rtt + 0.003*float64(conc)*noise(0.3)) * 1e9)}
		op.LastByte = max(op.FirstByte, int64((start+each*noise(0.08))*1e9))
		if c.System == "boxo" && conc == 64 && rng.Float64() < 0.06 {
			op.Outcome, op.Class, op.Status, op.Bytes, op.FirstByte = record.Error, "status 500", 500, 0, 0
		}
		end = max(end, float64(op.LastByte)/1e9)
		ops = append(ops, op)
	}
	return ops, end
}
