package studylog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plimsoll-project/plimsoll/record"
)

var writers = map[string]func(*record.Reader, io.Writer) error{"x.log": WriteLines, "x.jsonl": WriteVector}

// again exports a run and imports that.
func again(t *testing.T, r *record.Reader, name string) (*record.Reader, *Result, string) {
	t.Helper()
	var b bytes.Buffer
	if err := writers[name](r, &b); err != nil {
		t.Fatal(err)
	}
	got, res := imported(t, write2(t, name, strings.TrimSuffix(b.String(), "\n")))
	return got, res, b.String()
}

func TestARunComesBackFromItsExport(t *testing.T) {
	odd := codexStudy
	odd.size, odd.begin = 1<<20+77, odd.begin.Add(-time.Hour)
	all := append(append(odd.logs(), codexStudy.logs()...), delugeStudy.logs()...)
	// One leecher that did not complete, of each system.
	all = without(all, func(r map[string]any) bool {
		node, _ := r["node"].(string)
		return r["entry_type"] == "download_metric" && strings.HasSuffix(node, "-3") && r["dataset_name"] == "dataset-0-1" && r["value"] != int64(3) && r["value"].(int64) > 100 && r["value"].(int64)%2 == 1
	})
	r, first := imported(t, write2(t, "x.log", plainLog(all...)...))
	want := tell(t, r)
	if len(want) != 12 || first.Unfinished == 0 {
		t.Fatalf("%+v", first)
	}
	for name := range writers {
		got, res, _ := again(t, r, name)
		// The format has no place for the record before one of which a mark was made.
		if d := cmp.Diff(want, tell(t, got), cmpopts.EquateApprox(1e-12, 0), cmpopts.IgnoreFields(record.Mark{}, "Before")); d != "" {
			t.Errorf("%s (-want +got):\n%.3000s", name, d)
		}
		if res.Unfinished != first.Unfinished || res.Counts.Cut+res.Counts.Homeless+res.Counts.Incomplete > 0 {
			t.Errorf("%s: %+v, was %+v", name, res, first)
		}
	}
}

// ourRun is a run as the scenario disseminate records it: names that are not the
// study's, polls, other outcomes, a trial that is not valid.
func ourRun(t *testing.T, system string) *record.Run {
	t.Helper()
	base, _ := imported(t, write2(t, "x.log", plainLog(study{system: system, size: 1 << 20, nodes: 4, seeders: 1, sets: 1, repetition: 1, begin: codexStudy.begin, rate: 1e6, unit: 1}.logs()...)...))
	run, err := record.Create(filepath.Join(t.TempDir(), "run"), base.Plan(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	for block := range 3 {
		w, err := run.Begin("c001", block, false, codexStudy.begin.Add(time.Duration(block)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var details []record.Detail
		for n := range 4 {
			seeder := 0.0
			if n == block%2 {
				seeder = 1
			}
			details = append(details, record.Detail{Kind: record.DetailSeeder, Name: fmt.Sprintf("%s-%02d", system, n+1), Value: seeder})
			if seeder == 1 {
				continue
			}
			end := time.Duration(n+1)*time.Second + 123_456_789
			op := record.Op{Kind: record.OpFetch, Worker: uint32(n), Length: 1 << 20, Bytes: 1 << 20, FirstByte: int64(end / 4), LastByte: int64(end)}
			marks := []record.Mark{
				{Node: n, Before: 0, Start: end / 4, End: end/4 + 1500, Verified: 1 << 18, Written: -1, Received: 5, Sent: 6, Peers: 3},
				{Node: n, Before: end / 4, Start: end / 2, End: end/2 + 1500, Verified: 3 << 18, Written: -1, Received: 5, Sent: 6, Peers: 3},
			}
			last := record.Mark{Node: n, Before: end / 2, Start: end - 1500, End: end, Verified: 1 << 20, Written: 1 << 20, Received: 5, Sent: 6, Peers: 3, Complete: true}
			switch {
			case block == 1 && n == 2:
				op.Outcome, op.Class, op.Bytes = record.Stalled, "stalled", 3<<18
			case block == 1 && n == 3:
				op.Outcome, op.Class = record.WrongBytes, "wrong bytes"
				marks = append(marks, last)
			default:
				marks = append(marks, last)
			}
			if err := w.Ops([]record.Op{op}); err != nil {
				t.Fatal(err)
			}
			if err := w.Marks(marks); err != nil {
				t.Fatal(err)
			}
		}
		end := record.Trial{Details: details}
		if block == 2 {
			end.Invalid = []string{record.ReasonBoxBusy}
		}
		if err := w.End(end); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

func TestAnExportOfOurRuns(t *testing.T) {
	for _, system := range []string{"codex", "deluge", "boxo"} {
		run := ourRun(t, system)
		for name := range writers {
			got, res, text := again(t, run.Reader, name)
			if res.Trials != 2 || res.Leechers != 6 || res.Unfinished != 2 || !strings.Contains(text, "1 trials are left out") {
				t.Errorf("%s, %s: %+v", system, name, res)
			}
			for i, one := range tell(t, got) {
				for _, op := range one.Ops {
					end := time.Duration(op.Worker+1)*time.Second + 123_456_000 // the format has microseconds
					switch {
					case i == 1 && op.Worker >= 2:
						if op.Outcome == record.OK || op.Bytes != 3<<18 {
							t.Errorf("%s, %s: what did not complete is %+v", system, name, op)
						}
					case op.Outcome != record.OK || op.LastByte != int64(end) || op.Start != 0:
						t.Errorf("%s, %s: %+v, want its end at %v", system, name, op, end)
					}
				}
				quarter := 0
				for _, m := range one.Marks {
					if m.Verified == 1<<18 {
						quarter++
					}
				}
				if quarter != 3 || one.Trial.Details[i].Value != 1 || one.Trial.Details[0].Name != system+"-01" {
					t.Errorf("%s, %s: %d marks at a quarter, nodes %+v", system, name, quarter, one.Trial.Details)
				}
			}
		}
	}
}

// What the study's program and notebook ask of a log: fields that its types must
// have, names of nodes that its template gives, requests in its order.
func TestAnExportHasWhatTheStudyNeeds(t *testing.T) {
	_, _, text := again(t, ourRun(t, "deluge").Reader, "x.log")
	must := map[string][]string{
		"deluge_experiment_config_log_entry": {"experiment_set_id", "seeder_sets", "seeders", "file_size", "nodes", "repetitions", "tracker_announce_url", "download_metric_unit_bytes", "experiment_type"},
		"download_metric":                    {"name", "timestamp", "node", "value", "dataset_name"},
		"request_event":                      {"name", "timestamp", "node", "destination", "request_id", "type"},
		"experiment_stage":                   {"name", "timestamp", "stage", "type"},
		"experiment_status":                  {"name", "timestamp", "repetition", "duration"},
	}
	seen := map[string]int{}
	for line := range strings.Lines(text) {
		body, ok := strings.CutPrefix(line, ">>")
		if !ok {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatal(err)
		}
		kind := fields["entry_type"].(string)
		seen[kind]++
		for _, key := range must[kind] {
			if _, ok := fields[key]; !ok {
				t.Errorf("%s without %s: %s", kind, key, line)
			}
		}
		if kind == "deluge_experiment_config_log_entry" {
			nodes := fields["nodes"].(map[string]any)
			// The seeders of the two trials differ: each is a set of its own.
			if fields["seeder_sets"] != 2.0 || fields["repetitions"] != 1.0 || nodes["name"] != "deluge-{node_index:0>2}" || nodes["first_node_index"] != 1.0 || fields["download_metric_unit_bytes"] != float64(1<<18) {
				t.Errorf("%s", line)
			}
		}
	}
	must[typeCell], must[typeLeecher] = nil, nil
	if len(seen) != len(must) || seen["download_metric"] != 3*4+4+2*3 {
		t.Errorf("%v", seen)
	}
}

// A cell of a run has the first nodes of its system; our runs take seeder sets in
// turn, the study's notebook counts them one after the other.
func TestAnExportIsOfTheNodesAndSetsOfItsCell(t *testing.T) {
	base, _ := imported(t, write2(t, "x.log", plainLog(study{system: "deluge", size: 1 << 20, nodes: 3, seeders: 1, sets: 1, repetition: 4, begin: codexStudy.begin, rate: 1e6, unit: 1}.logs()...)...))
	run, err := record.Create(filepath.Join(t.TempDir(), "run"), base.Plan(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	for block := range 4 {
		w, err := run.Begin("c001", block, false, codexStudy.begin.Add(time.Duration(block)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var end record.Trial
		var ops []record.Op
		for n := range 8 { // five of them take no part
			role := -1.0
			switch {
			case n == block%2:
				role = 1
			case n < 3:
				role = 0
				ops = append(ops, record.Op{Kind: record.OpFetch, Worker: uint32(n), Length: 1 << 20, Bytes: 1 << 20, FirstByte: 1, LastByte: int64(block+1) * int64(time.Second)})
			}
			end.Details = append(end.Details, record.Detail{Kind: record.DetailSeeder, Name: fmt.Sprintf("deluge-%02d", n+1), Value: role})
		}
		if err := w.Ops(ops); err != nil {
			t.Fatal(err)
		}
		if err := w.End(end); err != nil {
			t.Fatal(err)
		}
	}
	got, res, text := again(t, run.Reader, "x.log")
	if !strings.Contains(text, `"network_size":3`) || strings.Contains(text, "deluge-04") || !strings.Contains(text, `"seeder_sets":2`) || !strings.Contains(text, `"repetitions":2`) {
		t.Errorf("%.600s", text)
	}
	var order []string // of the requests, as they stand in the log
	for line := range strings.Lines(text) {
		if strings.Contains(line, `"leech"`) {
			_, after, _ := strings.Cut(line, "dataset-")
			if set := after[:3]; len(order) == 0 || order[len(order)-1] != set {
				order = append(order, set)
			}
		}
	}
	if strings.Join(order, " ") != "0-0 0-1 1-0 1-1" || res.Trials != 4 {
		t.Errorf("requests in the order %v, %+v", order, res)
	}
	for _, one := range tell(t, got) {
		// Times of the trials are their own: block 0 and 2 are the first set.
		block := []int{0, 2, 1, 3}[one.Trial.Block]
		if took := one.Ops[0].LastByte; took != int64(block+1)*int64(time.Second) || one.Trial.Details[block%2].Value != 1 {
			t.Errorf("block %d took %d: %+v", one.Trial.Block, took, one.Trial.Details)
		}
	}
}
