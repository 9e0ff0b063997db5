package disseminate

import (
	"bytes"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/page"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
)

const file = `
scenario: disseminate
title: Synthetic swarm
systems: [boxo]
link: {rate: 100Mbit, delay: 10ms}
data: {size: 8MiB}
disseminate: {nodes: 5, seeders: 1, faults: [none, [{crash: leechers, count: 1, at: 25%, for: 2s}]]}
repetitions: 6
warmup: 0
`

const size = 8 << 20

// analysed returns the result of a run whose leechers get all after 1, 2, 3 and 4 seconds, and half
// of the content after half of that. With faults, it takes twice as long; in the first block, the
// second leecher then stalls at 50 % and the last one is cancelled; in the last block, the fault
// does not come.
func analysed(t *testing.T, file string) *analysis.Result {
	t.Helper()
	e, err := experiment.Parse("swarm.yaml", []byte(file), nil,
		experiment.Catalog{{Name: "boxo", Modes: []string{"start"}, Can: []string{"spread"}}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, raw, map[string]string{"plimsoll": "test"}, Scenario{}.Metrics())
	must(t, err)
	epoch := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for block := range plan.Blocks {
		for _, c := range plan.Cells {
			epoch = epoch.Add(time.Minute)
			w, err := run.Begin(c.ID, block, false, epoch)
			must(t, err)
			faulty, pace := c.Disseminate.Faults != nil, 1.0
			if faulty {
				pace = 2
			}
			trial := record.Trial{State: record.Done, Metrics: map[string]float64{"seeder_share": 0.95,
				"start_spread": 0.5, "resolution": 0.01}}
			var ops []record.Op
			var marks []record.Mark
			at := func(s float64) time.Duration { return time.Second + time.Duration(s*1e9) } // released after 1 s
			for node := range 5 {
				name := []string{"boxo-1", "boxo-2", "boxo-3", "boxo-4", "boxo-5"}[node]
				trial.Details = append(trial.Details, record.Detail{Kind: record.DetailSeeder, Name: name,
					Value: map[bool]float64{true: 1}[node == 0]})
				if node == 0 {
					continue
				}
				end := at(pace * float64(node))
				op := record.Op{Worker: uint32(node), Length: size, Bytes: size, Intended: int64(at(0)),
					FirstByte: int64(at(0.1)), LastByte: int64(end)}
				half, all := record.Mark{Node: node, End: (end + at(0)) / 2, Verified: size / 2},
					record.Mark{Node: node, End: end, Verified: size, Written: -1, Complete: true}
				switch {
				case faulty && block == 0 && node == 2:
					op.Outcome, op.Class, op.Bytes = record.Stalled, "no byte for 30 s", size/2
					all = half
				case faulty && block == 0 && node == 4:
					op.Outcome, op.Bytes = record.Cancelled, size/2
					all = half
				}
				ops, marks = append(ops, op), append(marks, half, all)
			}
			if whole := !faulty || block > 0; whole {
				trial.Metrics["time_median"], trial.Metrics["time_last"] = 2*pace, 4*pace
			}
			if faulty {
				trial.Metrics["outage"], trial.Metrics["recovery"], trial.Metrics["recovered"] = 2, 3, 1
			}
			if faulty && block == 5 {
				trial.Notes = []string{nodes.NoteFault + `"crash" never came: the load was over before`}
			}
			must(t, w.Ops(ops))
			must(t, w.Marks(marks))
			if faulty && block < 5 {
				detail := c.Disseminate.Faults.String() + ": boxo-3"
				must(t, w.Event(record.Event{At: epoch.Add(2 * time.Second), Kind: "fault", What: "crash begins",
					Detail: detail}))
				must(t, w.Event(record.Event{At: epoch.Add(4 * time.Second), Kind: "fault", What: "crash ends",
					Detail: detail}))
				must(t, w.Event(record.Event{At: epoch.Add(4 * time.Second), Kind: "node", What: "started again",
					Detail: "boxo-3"}))
			}
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

func TestSyntheticSwarm(t *testing.T) {
	r := analysed(t, file)
	calm, faulty := r.Cells[0], r.Cells[1]
	if faulty.Plan.Disseminate.Faults == nil {
		calm, faulty = faulty, calm
	}
	if p := calm.Success; p.OK != 24 || p.Of != 24 {
		t.Errorf("without faults %d of %d leechers finished", p.OK, p.Of)
	}
	if p := faulty.Success; p.OK != 22 || p.Of != 23 || p.Censored != 1 {
		t.Errorf("with faults %d of %d leechers finished, %d were cancelled", p.OK, p.Of, p.Censored)
	}
	if s := faulty.Metrics["time_last"]; s.Censored != 1 || s.N != 6 || s.Median != 8 {
		t.Errorf("the last with faults: %+v", s)
	}
	for key, want := range map[string]analysis.Num{"reached_50": 1, "reached_95": 2} {
		if got := calm.Metrics[key].Median; math.Abs(float64(got-want)) > 1e-6 {
			t.Errorf("%s = %v, want %v", key, got, want)
		}
	}

	faults := r.Table("faults")
	if len(faults.Rows) != 1 || faults.Get(0, "recovery").Number != 3 || faults.Get(0, "last").Number.Known() {
		t.Errorf("faults: %+v", faults.Rows)
	}
	for rule, want := range map[string]bool{"leechers-unfinished": true, "failures": false, "partial-faults": true,
		"slow-recovery": true,
		"no-sharing":    true, "start-spread": true} {
		if r.Found(rule) != want {
			t.Errorf("rule %s fired: %v", rule, !want)
		}
	}
	if faulty.Valid = 0; len(faultTable(r.Frame).Rows) > 0 {
		t.Error("faults of a cell without a valid trial")
	}
}

func TestLeechersOfATrial(t *testing.T) {
	r := analysed(t, file)
	var first *analysis.Trial // with faults
	for _, x := range r.Frame.Trials {
		if x.Block == 0 && x.Info.Plan.Disseminate.Faults != nil {
			first = x
		}
	}
	rows := r.Frame.Entities(first, "leecher_time")
	if len(rows) != 3 { // the cancelled one does not count
		t.Fatalf("%d leechers were to finish", len(rows))
	}
	for _, row := range rows {
		if want := map[string]float64{"boxo-2": 2, "boxo-3": math.Inf(1),
			"boxo-4": 6}[row.Entity]; row.Censored != math.IsInf(want, 1) || !row.Censored &&
			math.Abs(row.Value-want) > 1e-6 {
			t.Errorf("%s: %+v, want %v", row.Entity, row.Value, want)
		}
	}
	kinds := map[string]int{}
	for _, s := range r.Frame.Spans {
		if s.Trial == first {
			kinds[s.Kind]++
			if s.Kind == "fault" && s.Entity == "" && s.To != s.From &&
				(math.Abs(s.From-1) > 1e-6 || math.Abs(s.To-3) > 1e-6) {
				t.Errorf("the fault lasts from %v to %v, want 1 to 3 s after the release", s.From, s.To)
			}
			if s.Kind == "node" && s.Entity != "boxo-3" {
				t.Errorf("%q is of node %q", s.Note, s.Entity)
			}
		}
	}
	for kind, want := range map[string]int{"waiting": 4, "fetching": 2, "unfinished": 2, "end": 2, "node": 1} {
		if kinds[kind] != want {
			t.Errorf("%d spans of kind %s, want %d", kinds[kind], kind, want)
		}
	}
}

// Every figure over cells has a panel for each level of the factors that are not on its axis.
func TestFiguresKeepEveryFactor(t *testing.T) {
	r := analysed(t, regexp.MustCompile(`disseminate: .*`).ReplaceAllString(file,
		"disseminate: {nodes: [5, 9], seeders: [1, 2]}"))
	var b bytes.Buffer
	if err := page.HTML(&b, r, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seeders 1", "seeders 2", "nodes 9, seeders 2"} {
		if !strings.Contains(b.String(), `"title":"`+want+`"`) {
			t.Errorf("no panel %q", want)
		}
	}
}
