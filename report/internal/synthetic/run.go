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
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

// catalog is what the experiments may name.
func catalog() experiment.Catalog {
	return experiment.Catalog{
		{Name: "nginx", Modes: []string{"start"}, Baseline: true, Can: []string{"http"}},
		{Name: "boxo", Modes: []string{"start"}, Can: []string{"http"}},
	}
}

// Run says what a synthetic run is to contain.
type Run struct {
	File   string
	Blocks int
	Stop   int     // trials after which the run is left unfinished; 0: none
	Seed   uint64  // 0: the usual one
	Own    float64 // bytes per second of a system by itself; 0: some of each
}

// Plan is the plan of an experiment file whose systems are nginx and boxo.
func Plan(file string) (*experiment.Plan, error) {
	e, err := experiment.Parse("synthetic.yaml", []byte(file), nil, catalog())
	if err != nil {
		return nil, err
	}
	return e.Plan()
}

// Create makes the run directory with its plan.
func (s Run) Create(t testing.TB) (dir string, run *record.Run, plan *experiment.Plan) {
	t.Helper()
	plan, err := Plan(s.File)
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir = filepath.Join(memory(t), "run")
	run, err = record.Create(dir, raw,
		map[string]string{"plimsoll": "v0.0.0-test", "command": "plimsoll run synthetic.yaml",
			"environment": `{"kernel":"6.1.0","cpu.count":"2","cpu.model":"Synthetic <CPU> & Sons",` +
				`"load":"0.10 0.12 0.09 1/123 4567"}`,
			"systems": `{"nginx":{"version":"1.22.1"},"boxo":{"version":"v0.39.0"}}`}, retrieve.Scenario{}.Metrics())
	must(t, err)
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
// seed: the same options give the same directory.
func (s Run) Write(t testing.TB) (dir string, run *record.Run) {
	t.Helper()
	dir, run, plan := s.Create(t)
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	must(t, run.Event(record.Event{At: begun, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(7, 7+s.Seed))
	n := 0
	for block := -1; block < s.Blocks; block++ {
		for _, i := range rng.Perm(len(plan.Cells)) {
			if s.Stop > 0 && n == s.Stop {
				return dir, run
			}
			s.trial(t, run, plan.Cells[i], block, begun.Add(time.Duration(n)*10*time.Second), rng, n)
			n++
		}
	}
	must(t, run.Event(record.Event{At: begun.Add(time.Duration(n) * 10 * time.Second), Kind: "phase",
		What: "run ends"}))
	must(t, run.Close())
	return dir, run
}

// trial simulates a fair-shared link: at most the link's rate for all, at most
// the system's own rate.
func (s Run) trial(t testing.TB, run *record.Run, c experiment.Cell, block int, epoch time.Time, rng *rand.Rand,
	n int) {
	w, err := run.Begin(c.ID, block, block < 0, epoch)
	must(t, err)
	noise := func(cv float64) float64 { return math.Exp(cv * rng.NormFloat64()) }
	rate, rtt := float64(c.Link.Rate)/8*0.949, 2*time.Duration(c.Link.Delay).Seconds()
	measured := rate * noise(0.002)
	check := record.LinkCheck{From: c.System, To: "client", Emulator: "netem", Congestion: "cubic", WantRTT: rtt,
		RTT: rtt * noise(0.003), RTTP99: rtt * 1.04,
		WantRate: rate * 8, Rate: measured * 8, Loss: math.NaN(), Lateness: 0.0002, Tolerance: 0.05, OK: true}
	trial := record.Trial{Notes: []string{"receive: verify (raw http/1.1, pooled buffers)", "protocol: http/1.1"}}
	if n == 25 {
		check.OK, check.RTT, check.Why = false, rtt*1.21, "the round trip is 21 % over"
		trial.Invalid = append(trial.Invalid, record.ReasonLinkOff)
	}
	must(t, w.Link(check))
	conc, size := c.Retrieve.Concurrency, float64(c.Retrieve.Range)
	own := map[string]float64{"nginx": 4e9, "boxo": 45e6}[c.System]
	if s.Own > 0 {
		own = s.Own
	}
	line := min(measured, float64(conc)*size/(rtt+size/measured))
	total := min(line*0.97, own) * noise(0.015)
	if c.System == "boxo" && conc == 64 {
		total *= 0.8
	}
	if n%40 == 11 && c.System != "nginx" {
		trial.Invalid = append(trial.Invalid, record.ReasonGeneratorSaturated)
	}
	each := size * float64(conc) / total // seconds per operation
	ops, bytes, end := s.operations(c, rtt, each, rng)
	must(t, w.Ops(ops))
	for sec := range int(end) + 1 {
		at := time.Duration(sec) * time.Second
		must(t, w.Samples([]record.Sample{{Start: at, End: at + time.Millisecond, Process: c.System + "/server",
			Role: "system", PID: 100, CPU: 0.2 * float64(sec), RSS: 3e7, PSS: math.NaN(),
			ReadBytes: 0, WriteBytes: 0, FDs: 20, NetRx: 0, NetTx: 0, Threads: 4}}))
	}
	perGB := map[string]float64{"nginx": 0.19, "boxo": 9.4}[c.System]
	trial.Metrics = Measure(w.Summary(), end, line)
	for key, least := range map[string]float64{"ttfb": rtt, "duration": rtt + size/measured} {
		trial.Metrics[key+"_line"] = least
		if took := trial.Metrics[key+"_p50"]; took > 0 {
			trial.Metrics[key+"_line_share"] = least / took
		}
	}
	gb := bytes / 1e9
	trial.Metrics["system_cpu_per_gb"] = perGB * noise(0.03)
	trial.Metrics["generator_cpu_per_gb"] = (0.31*gb*noise(0.03) + 0.002) / gb
	trial.Metrics["system_rss_peak"] = (map[string]float64{"nginx": 9e6, "boxo": 88e6}[c.System] +
		1e5*float64(conc)) * noise(0.01)
	trial.Metrics["generator_rss_peak"] = (22e6 + 4e4*float64(conc)) * noise(0.01)
	trial.Metrics["others_busy"] = 0.02 * noise(0.2)
	trial.Seconds = end
	must(t, w.End(trial))
}

// operations are those of a trial in which each takes about so many seconds, with the
// bytes of the good ones and when the last ends.
func (s Run) operations(c experiment.Cell, rtt, each float64, rng *rand.Rand) (ops []record.Op, bytes,
	end float64) {
	noise := func(cv float64) float64 { return math.Exp(cv * rng.NormFloat64()) }
	conc, size := c.Retrieve.Concurrency, float64(c.Retrieve.Range)
	loaded := c.System == "boxo" && conc == 64
	for i := range int(c.Retrieve.Requests) {
		start := float64(i/conc) * each
		took := each * noise(0.08)
		op := record.Op{Kind: record.OpRange, Status: 206, Worker: uint32(i % conc), Offset: int64(i) << 16,
			Length: int64(size), Bytes: int64(size),
			Start: int64(start * 1e9), FirstByte: int64((start + rtt + 0.003*float64(conc)*noise(0.3)) * 1e9)}
		op.LastByte = max(op.FirstByte, int64((start+took)*1e9))
		op.Intended = op.Start
		switch {
		case loaded && rng.Float64() < 0.06:
			op.Outcome, op.Class, op.Status, op.Bytes, op.FirstByte = record.Error, "status 500", 500, 0, 0
		case loaded && rng.Float64() < 0.03:
			op.Outcome, op.Class, op.Bytes = record.Truncated, "body ended early", op.Bytes/3
		case c.Link.Rate < 2e8 && conc == 64 && rng.Float64() < 0.18:
			op.Outcome, op.Class, op.Bytes = record.Deadline, "deadline", op.Bytes/2
		default:
			bytes += size
		}
		end = max(end, float64(op.LastByte)/1e9)
		ops = append(ops, op)
	}
	return ops, bytes, end
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
