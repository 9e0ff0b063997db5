package report

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/stats"
)

var swarmCatalog = experiment.Catalog{
	{Name: "fanout", Modes: []string{"start"}, Baseline: true, Spreads: true},
	{Name: "deluge", Modes: []string{"start"}, Spreads: true},
	{Name: "boxo", Modes: []string{"start"}, Spreads: true},
}

const swarmFile = `
scenario: disseminate
title: Synthetic swarm
question: How fast does content spread from its seeders to everybody else?
systems: [deluge, boxo]
baseline: deluge
link: {rate: 100Mbit, delay: 10ms}
data: {size: 8MiB}
disseminate: {gate: 20%, nodes: 8, seeders: 1}
repetitions: 8
warmup: 0
`

// leech is what becomes of one leecher of a synthetic trial.
type leech struct {
	join    float64 // seconds after the release
	took    float64 // to the last verified byte, or until the outcome was decided
	got     float64 // share of the content
	after   float64 // share that it had when it was asked once more after its end; 0: it was not
	outcome record.Outcome
	class   string
}

// swarmTruth is what a synthetic run of swarms is to contain.
type swarmTruth struct {
	file string
	// leechers changes those of a trial, who all get everything in line × the pace
	// of their system.
	leechers func(c *experiment.Cell, block int, line float64, all []leech)
	pace     map[string]float64
	metrics  func(c *experiment.Cell, block int, m map[string]float64)
	seeders  func(c *experiment.Cell, sent []float64) // what each seeder sent, times the content
	events   func(c *experiment.Cell, epoch time.Time) []record.Event
	trial    func(c *experiment.Cell, block int, t *record.Trial)
	imported *experiment.Imported
	later    time.Duration // begun after the others
}

// plan is that of the synthetic experiment.
func (s swarmTruth) plan(t testing.TB) *experiment.Plan {
	t.Helper()
	if s.file == "" {
		s.file = swarmFile
	}
	e, err := experiment.Parse("swarm.yaml", []byte(s.file), nil, swarmCatalog)
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	return plan
}

// write makes the run directory through the recorder.
func (s swarmTruth) write(t testing.TB) string {
	t.Helper()
	if s.pace == nil {
		s.pace = map[string]float64{"deluge": 1.2, "boxo": 1.26}
	}
	plan := s.plan(t)
	var err error
	if s.imported != nil {
		plan, err = plan.Import(*s.imported, func(experiment.Cell) bool { return true }, plan.Blocks)
		must(t, err)
	}
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	meta := map[string]string{"plimsoll": "v0.0.0-test", "environment": `{"cpu.count":"2"}`}
	run, err := record.Create(dir, raw, meta, disseminate.Scenario{}.Metrics())
	must(t, err)
	begun := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(s.later)
	must(t, run.Event(record.Event{At: begun, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(11, 11))
	at := begun
	for block := range plan.Blocks {
		// What a block does to all alike cancels within it.
		common := math.Exp(0.05 * rng.NormFloat64())
		for _, i := range rng.Perm(len(plan.Cells)) {
			s.one(t, run, &plan.Cells[i], block, at, common, rng)
			at = at.Add(time.Minute)
		}
	}
	must(t, run.Event(record.Event{At: at, Kind: "phase", What: "run ends"}))
	must(t, run.Close())
	return dir
}

func (s swarmTruth) one(t testing.TB, run *record.Run, c *experiment.Cell, block int, epoch time.Time, common float64,
	rng *rand.Rand) {
	w, err := run.Begin(c.ID, block, false, epoch)
	must(t, err)
	trial, ops, marks := s.made(c, block, common, rng)
	must(t, w.Ops(ops))
	must(t, w.Marks(marks))
	if s.events != nil {
		for _, e := range s.events(c, epoch) {
			must(t, w.Event(e))
		}
	}
	must(t, w.End(trial))
}

// made is one trial of a cell.
func (s swarmTruth) made(c *experiment.Cell, block int, common float64, rng *rand.Rand) (record.Trial, []record.Op,
	[]record.Mark) {
	d, size := c.Disseminate, float64(c.Data.Size)
	l := d.Leechers()
	payload := func(wire float64) float64 { return 0.949 * wire }
	line, halfLine := c.LoadLine(payload), c.LoadLineOf(disseminate.MedianLeecher(l), payload)
	poll := line / 100
	all := make([]leech, l)
	for i := range all {
		// The last leecher takes line × pace; the others a little less.
		pace := s.pace[c.System] * common * (1 - 0.15*float64(i)/float64(l))
		all[i] = leech{took: line * pace * math.Exp(0.005*rng.NormFloat64()), got: 1}
	}
	if s.leechers != nil {
		s.leechers(c, block, line, all)
	}
	var ops []record.Op
	var marks []record.Mark
	ns := func(sec float64) int64 { return int64(sec * 1e9) }
	ok := 0
	for i := range all {
		x := all[i]
		node := d.Seeders + i // the first nodes are the seeders
		const wait = 0.04
		op := record.Op{Kind: record.OpFetch, Worker: uint32(node), Length: int64(size), Bytes: int64(x.got * size),
			Outcome: x.outcome, Class: x.class,
			Intended: ns(x.join), Start: ns(x.join) + 1000, LastByte: ns(x.join + x.took)}
		if x.got > 0 {
			op.FirstByte = ns(x.join + wait)
		}
		ops = append(ops, op)
		if x.outcome == record.OK {
			ok++
		}
		// Percents come evenly until what it got.
		before, steps := x.join, int(math.Round(x.got*100))
		for p := 1; p <= steps; p++ {
			at := x.join + wait + (x.took*0.999-wait)*float64(p)/float64(steps)
			marks = append(marks, record.Mark{Node: node, Before: time.Duration(ns(before)),
				Start: time.Duration(ns(at)), End: time.Duration(ns(at + 0.0005)),
				Verified: int64(math.Ceil(float64(p) / 100 * size)), Written: -1, Received: -1, Sent: -1, Peers: 3,
				Complete: p == 100})
			before = at
		}
		if x.after > 0 {
			at := x.join + x.took + 5
			marks = append(marks, record.Mark{Node: node, Before: time.Duration(ns(before)),
				Start: time.Duration(ns(at)), End: time.Duration(ns(at + 0.0005)), Verified: int64(x.after * size),
				Written: -1, Received: -1, Sent: -1, Peers: 3})
		}
	}
	slices.SortFunc(ops, func(a, b record.Op) int { return cmp.Compare(a.LastByte, b.LastByte) })
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	m := map[string]float64{"first_byte": 0.04, "start_spread": 0.001, "resolution": poll, "overhead": 1.06,
		"duplicates": 1.01, "seeder_share": 0.3, "stalls": 0,
		"ok_rate": float64(ok) / float64(l), "system_cpu": 1, "system_cpu_per_gb": 4, "node_rss_peak": 6e7,
		"harness_cpu": 0.02, "others_busy": 0.01}
	quantile := func(of func(leech) float64, q float64) (float64, bool) {
		var lifetimes []stats.Lifetime
		for _, x := range all {
			v := of(x)
			if x.outcome.ServerFailure() {
				v = math.Inf(1)
			}
			lifetimes = append(lifetimes, stats.Lifetime{Time: v, Happened: x.outcome == record.OK})
		}
		v := stats.ProductLimit(lifetimes, q)
		return v, !math.IsInf(v, 1)
	}
	times := func(x leech) float64 { return x.took }
	disks := func(x leech) float64 { return x.took + poll }
	for key, q := range map[string]float64{"p25": 0.25, "median": 0.5, "p75": 0.75, "last": 1} {
		if v, ok := quantile(times, q); ok {
			m["time_"+key] = v
			if key != "last" {
				m["speed_"+map[string]string{"p25": "p75", "median": "median", "p75": "p25"}[key]] = size / v
			}
		}
	}
	for key, q := range map[string]float64{"median": 0.5, "last": 1} {
		if v, ok := quantile(disks, q); ok {
			m["disk_"+key] = v
		}
	}
	if d.Faults == nil && d.Join.Together() {
		m["line"], m["line_median"], m["speed_line"] = line, halfLine, size/halfLine
		if median, ok := m["time_median"]; ok {
			m["line_median_share"] = halfLine / median
		}
		if last, ok := m["time_last"]; ok {
			m["line_share"] = line / last
		}
	}
	if s.metrics != nil {
		s.metrics(c, block, m)
	}
	trial := record.Trial{Metrics: m, Seconds: line * 2}
	sent := slices.Repeat([]float64{float64(l) * 0.3 / float64(d.Seeders)}, d.Seeders)
	if s.seeders != nil {
		s.seeders(c, sent)
	}
	detail := func(kind string, of func(node int) float64) {
		for n := range d.Nodes {
			trial.Details = append(trial.Details,
				record.Detail{Kind: kind, Name: fmt.Sprintf("%s-%02d", c.System, n+1), Value: of(n)})
		}
	}
	seeds := func(n int) bool { return n < d.Seeders }
	pick := func(n int, seeder, leecher float64) float64 {
		if seeds(n) {
			return seeder
		}
		return leecher
	}
	detail(record.DetailSeeder, func(n int) float64 { return pick(n, 1, 0) })
	detail(record.DetailLinkReceived, func(n int) float64 { return pick(n, 0.05, 1.06) * size })
	detail(record.DetailLinkSent, func(n int) float64 {
		if seeds(n) {
			return sent[n] * size
		}
		return 0.7 * size
	})
	detail(record.DetailNodeCPU, func(n int) float64 { return pick(n, 0.3, 0.1) })
	detail(record.DetailNodeRSS, func(n int) float64 { return pick(n, 6e7, 5e7) })
	if s.trial != nil {
		s.trial(c, block, &trial)
	}
	return trial, ops, marks
}

// cellOf finds a cell's account.
