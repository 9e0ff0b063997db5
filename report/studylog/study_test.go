package studylog

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
)

// study makes logs such as the study's programs write. It is written from the
// definition of the format, not from logs of others.
type study struct {
	system                           string
	size                             int64
	nodes, seeders, sets, repetition int
	begin                            time.Time
	rate                             float64 // B/s of the slowest leecher
	unit                             int64
}

var codexStudy = study{system: "codex", size: 1 << 20, nodes: 4, seeders: 1, sets: 2, repetition: 2,
	begin: time.Date(2025, 2, 20, 10, 0, 0, 0, time.UTC), rate: 1e5, unit: 1}
var delugeStudy = study{system: "deluge", size: 4 << 20, nodes: 5, seeders: 2, sets: 2, repetition: 2,
	begin: time.Date(2025, 2, 20, 11, 0, 0, 0, time.UTC), rate: 1e6, unit: 16 << 10}

func (s study) node(i int) string { return fmt.Sprintf("%s-nodes-%d", s.system, i) }

// logged is a record with the pod that wrote it.
type logged struct {
	pod    string
	record map[string]any
}

func (l logged) text() string {
	b, err := json.Marshal(l.record)
	if err != nil {
		panic(err)
	}
	return ">>" + string(b)
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// took is how long a leecher of the study takes for the whole content.
func (s study) took(set, rep, node int) time.Duration {
	rng := rand.New(rand.NewPCG(uint64(100*set+rep), uint64(node)))
	return time.Duration(float64(s.size) / s.rate / (1 + rng.Float64()) * 1e9).Truncate(time.Microsecond)
}

// logs are all records of the study, in the order of their times.
func (s study) logs() []logged {
	kind := s.system + "_experiment_config_log_entry"
	var nodes []map[string]any
	for i := range s.nodes {
		nodes = append(nodes, map[string]any{"name": s.node(i), "address": "a.example.org"})
	}
	all := []logged{{"runner-" + s.system,
		map[string]any{"entry_type": kind, "experiment_type": kind, "experiment_set_id": s.system + "-set",
			"seeder_sets": s.sets, "seeders": s.seeders,
			"file_size": s.size, "repetitions": s.repetition, "download_metric_unit_bytes": s.unit,
			"nodes": map[string]any{"network_size": s.nodes, "name": s.system + "-nodes-{node_index}",
				"nodes": nodes}}}}
	at := s.begin
	runner := func(kind string, when time.Time, fields map[string]any) {
		fields["entry_type"], fields["timestamp"] = kind, stamp(when)
		all = append(all, logged{"runner-" + s.system, fields})
	}
	// both logs what begins and what ends something; all is sorted in the end.
	both := func(kind string, start, end time.Time, fields map[string]any) {
		for boundary, when := range map[string]time.Time{"start": start, "end": end} {
			record := maps.Clone(fields)
			record["type"] = boundary
			runner(kind, when, record)
		}
	}
	stage := func(name string, start, end time.Time) {
		both("experiment_stage", start, end, map[string]any{"name": "", "stage": name, "error": nil})
	}
	request := func(name, destination, dataset string, start, end time.Time) {
		both("request_event", start, end, map[string]any{"name": name, "node": "runner", "destination": destination,
			"request_id": fmt.Sprintf("Meta(name='%s')", dataset)})
	}
	for set := range s.sets {
		for rep := range s.repetition {
			dataset := fmt.Sprintf("dataset-%d-%d", set, rep)
			begun := at
			at = at.Add(3 * time.Second)
			stage("seeding", begun, at)
			stage("leeching", at, at.Add(20*time.Millisecond))
			last := at
			for i := range s.nodes {
				if (i+set)%s.nodes < s.seeders {
					request("genseed", s.node(i), dataset, begun.Add(time.Second), begun.Add(2*time.Second))
					continue
				}
				start := at.Add(time.Duration(1+i) * time.Millisecond)
				name := s.node(i)
				if s.system == "codex" {
					name = `"` + name + `"` // as the study's agents say it
				}
				request("leech", name, dataset, start, start.Add(time.Millisecond))
				took := s.took(set, rep, i)
				metric := func(name string, value, have int64) {
					done := time.Duration(float64(took) * float64(have) / float64(s.size))
					when := start.Add(done).Truncate(time.Microsecond)
					if have == s.size {
						when = start.Add(took)
					}
					if when.After(last) {
						last = when
					}
					all = append(all, logged{s.node(i),
						map[string]any{"entry_type": "download_metric", "timestamp": stamp(when), "name": name,
							"value": value, "node": s.node(i), "dataset_name": dataset}})
				}
				if s.unit == 1 {
					step := s.size / 100
					for v := step; v <= s.size-step; v += step {
						metric("download", v, v)
					}
					metric("download", s.size/step*step, s.size)
				} else {
					pieces := rand.New(rand.NewPCG(1, uint64(i))).Perm(int(s.size / s.unit))
					for n, p := range pieces {
						metric("deluge_piece_downloaded", int64(p), int64(n+1)*s.unit)
					}
				}
			}
			stage("downloading", at.Add(20*time.Millisecond), last.Add(time.Second))
			at = last.Add(time.Second)
			runner("experiment_status", at.Add(time.Millisecond),
				map[string]any{"name": s.system + "-set", "repetition": set*s.repetition + rep,
					"duration": at.Sub(begun).Seconds(), "error": nil})
			stage("deleting", at.Add(2*time.Millisecond), at.Add(time.Second))
			at = at.Add(10 * time.Second)
		}
	}
	slices.SortStableFunc(all[1:], func(a, b logged) int {
		return strings.Compare(a.record["timestamp"].(string), b.record["timestamp"].(string))
	})
	return all
}

// without are the records but those that drop says.
func without(all []logged, drop func(r map[string]any) bool) []logged {
	return slices.DeleteFunc(slices.Clone(all), func(l logged) bool { return drop(l.record) })
}

// logFile writes lines to a file of a temporary directory.
func logFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	return file
}

// plainLog is the log as the study's programs print it.
func plainLog(all ...logged) []string {
	var lines []string
	for i, l := range all {
		lines = append(lines, "2025-02-20 10:00:00,123 - benchmarks.core - INFO - "+l.text())
		if i%10 == 0 {
			lines = append(lines, "2025-02-20 10:00:00,124 - urllib3 - INFO - something else >> that is no record")
		}
	}
	return lines
}

// split writes the tables that the study's program makes of an experiment.
func split(t *testing.T, dir string, all []logged) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	columns := map[string][]string{
		"download_metric":   {"name", "timestamp", "node", "value", "dataset_name"},
		"request_event":     {"name", "timestamp", "node", "destination", "request_id", "type"},
		"experiment_stage":  {"name", "timestamp", "stage", "type", "error"},
		"experiment_status": {"name", "timestamp", "repetition", "duration", "error"},
	}
	tables := map[string][][]string{}
	for _, l := range all {
		kind := l.record["entry_type"].(string)
		head := columns[kind]
		if head == nil {
			record := maps.Clone(l.record)
			delete(record, "entry_type")
			b, err := json.Marshal(record)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, kind+".jsonl"), append(b, '\n'), 0o644))
			continue
		}
		if tables[kind] == nil {
			tables[kind] = [][]string{head}
		}
		row := make([]string, len(head))
		for i, key := range head {
			switch v := l.record[key]; {
			case v == nil:
			case key == "type":
				row[i] = "EventBoundary." + v.(string)
			case key == "timestamp":
				row[i] = strings.Replace(strings.Replace(v.(string), "T", " ", 1), "Z", "+00:00", 1)
			default:
				row[i] = fmt.Sprint(v)
			}
		}
		tables[kind] = append(tables[kind], row)
	}
	for kind, rows := range tables {
		var b bytes.Buffer
		must(t, csv.NewWriter(&b).WriteAll(rows))
		must(t, os.WriteFile(filepath.Join(dir, kind+".csv"), b.Bytes(), 0o644))
	}
}

// imported imports files into a new run directory and opens it.
func imported(t *testing.T, files ...string) (*record.Reader, *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	res, err := Import(t.Context(), files, Options{Dir: dir, Version: "test", Measure: disseminate.TimesOf})
	must(t, err)
	r, err := record.Open(dir)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, res
}

// importedLogs imports records as the study's programs print them.
func importedLogs(t *testing.T, logs []logged) ([]trialFacts, *Result) {
	t.Helper()
	r, res := imported(t, logFile(t, "x.log", plainLog(logs...)...))
	return factsOfTrials(t, r), res
}

// trialFacts is all that a run says of its trials, comparable.
type trialFacts struct {
	Trial record.Trial
	Ops   []record.Op
	Marks []record.Mark
}

func factsOfTrials(t *testing.T, r *record.Reader) []trialFacts {
	t.Helper()
	trials, err := r.Trials()
	must(t, err)
	var all []trialFacts
	for _, tr := range trials {
		one := trialFacts{Trial: tr}
		for op, err := range r.Ops(tr.ID) {
			must(t, err)
			one.Ops = append(one.Ops, op)
		}
		for m, err := range r.Marks(tr.ID) {
			must(t, err)
			one.Marks = append(one.Marks, m)
		}
		all = append(all, one)
	}
	return all
}
