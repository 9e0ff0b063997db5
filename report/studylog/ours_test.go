package studylog

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

const faultyFile = `
scenario: disseminate
systems: [{name: tcp, use: deluge}, {name: utp, use: deluge}, fanout]
baseline: fanout
link: {rate: [100Mbit, 10Mbit], delay: 5ms}
data: {size: 1MiB}
disseminate: {nodes: 4, seeders: 1, faults: [none, "crash seeders at 50% for 4s"], join: [together, "poisson 0.5/s"]}
repetitions: 2
warmup: 0
`

// faultyRun is a run whose cells differ in what the study's logs do not know: in
// each second trial a leecher stalls.
func faultyRun(t *testing.T) (*record.Run, *plan.Plan) {
	t.Helper()
	catalog := plan.Catalog{{Name: "deluge", Modes: []string{"start"}, Spreads: true}, {Name: "fanout", Modes: []string{"start"}, Spreads: true, Baseline: true}}
	e, err := plan.Parse("faulty.yaml", []byte(faultyFile), nil, catalog)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	run, err := record.Create(filepath.Join(t.TempDir(), "run"), raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	at := codexStudy.begin
	for block := range 2 {
		for i, c := range p.Cells {
			at = at.Add(time.Minute)
			w, err := run.Begin(c.ID, block, false, at)
			if err != nil {
				t.Fatal(err)
			}
			end := record.Trial{}
			var ops []record.Op
			for n := range 4 {
				seeder := 0.0
				if n == 0 {
					seeder = 1
				}
				end.Details = append(end.Details, record.Detail{Kind: record.DetailSeeder, Name: fmt.Sprintf("%s-%02d", c.System, n+1), Value: seeder})
				if n == 0 {
					continue
				}
				op := record.Op{Kind: record.OpFetch, Worker: uint32(n), Length: 1 << 20, Bytes: 1 << 20, FirstByte: 1e9, LastByte: int64(i+2) * 1e9}
				if block == 1 && n == 2 {
					op.Outcome, op.Class, op.Bytes = record.Stalled, "no answer", 1<<19
				}
				ops = append(ops, op)
			}
			if c.Disseminate.Faults != "none" {
				for k, what := range []string{"crash begins", "crash ends"} {
					if err := w.Event(record.Event{At: at.Add(time.Duration(k) * 1500 * time.Millisecond), Kind: "fault", What: what, Detail: c.Disseminate.Faults + ": " + c.System + "-01", Took: 20 * time.Millisecond}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Ops(ops); err != nil {
				t.Fatal(err)
			}
			if err := w.End(end); err != nil {
				t.Fatal(err)
			}
		}
	}
	return run, p
}

// What an export had to say in records of its own keeps cells apart that the
// study's configurations do not tell from each other.
func TestCellsStayApart(t *testing.T) {
	run, p := faultyRun(t)
	name := func(c plan.Cell) string {
		return fmt.Sprint(c.System, c.Data.Size, c.Disseminate.Nodes, c.Disseminate.Seeders, factorsOf(c))
	}
	var want []string
	for _, c := range p.Cells {
		want = append(want, name(c))
	}
	slices.Sort(want)
	for file := range writers {
		got, res, text := again(t, run.Reader, file)
		var q plan.Plan
		if err := json.Unmarshal(got.Plan(), &q); err != nil {
			t.Fatal(err)
		}
		cells := map[string]plan.Cell{}
		var have []string
		for _, c := range q.Cells {
			cells[c.ID] = c
			have = append(have, name(c))
		}
		slices.Sort(have)
		if !slices.Equal(want, have) || q.Experiment.Baseline != "fanout" || res.Trials != 2*len(p.Cells) || strings.Contains(strings.Join(q.Imported.Notes, "|"), "one cell") {
			t.Fatalf("%s: baseline %s, %d trials\n%v\nof\n%v\n%v", file, q.Experiment.Baseline, res.Trials, have, want, q.Imported.Notes)
		}
		// A trial of the first run has the last byte of its cell's number.
		trials, err := got.Trials()
		if err != nil {
			t.Fatal(err)
		}
		events, err := got.Events()
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			c := cells[trial.Cell]
			at := slices.IndexFunc(p.Cells, func(o plan.Cell) bool { return name(o) == name(c) })
			for op, err := range got.Ops(trial.ID) {
				if err != nil {
					t.Fatal(err)
				}
				stalled := trial.Block == 1 && op.Worker == 2
				if op.LastByte != int64(at+2)*1e9 || (op.Outcome == record.OK) == stalled || stalled && (op.Outcome != record.Stalled || op.Class != "no answer") {
					t.Errorf("%s, %s, block %d: %+v, want its end after %d s", file, name(c), trial.Block, op, at+2)
				}
			}
			faults := 0
			for _, e := range events {
				if e.Trial == trial.ID && e.Kind == "fault" && strings.HasPrefix(e.Detail, "crash seeders at 50% for 4s: ") && e.Took == 20*time.Millisecond {
					faults++
				}
			}
			if (faults == 2) != (c.Disseminate.Faults != "none") {
				t.Errorf("%s, %s: %d events of faults", file, name(c), faults)
			}
		}
		// Without those records the cells are one, and that is said.
		var bare []string
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "plimsoll_") {
				bare = append(bare, strings.TrimSuffix(line, "\n"))
			}
		}
		got, _ = imported(t, write2(t, file, bare...))
		if err := json.Unmarshal(got.Plan(), &q); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(q.Imported.Notes, "|"), "are one cell, since the log has no place for what else they may differ in") {
			t.Errorf("%s: %v", file, q.Imported.Notes)
		}
	}
}
