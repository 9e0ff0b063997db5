package studylog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
)

// What is imported are the numbers of the log: times of each leecher since its
// own request, seeders, progress.
func TestAnImportHasTheNumbersOfTheLog(t *testing.T) {
	for _, s := range []study{codexStudy, delugeStudy} {
		all, res := importedLogs(t, s.logs())
		leechers := s.nodes - s.seeders
		if len(all) != s.sets*s.repetition || res.Experiments != 1 || res.Trials != len(all) ||
			res.Leechers != len(all)*leechers || res.Unfinished != 0 || res.Absent != 0 {
			t.Fatalf("%s: %+v", s.system, res)
		}
		for i, one := range all {
			if tr := one.Trial; !tr.Valid() || tr.Block != i || tr.Outcomes["ok"] != int64(leechers) {
				t.Fatalf("%s: %+v", s.system, tr)
			}
			seeders := 0
			for n, d := range one.Trial.Details {
				if d.Kind != record.DetailSeeder || d.Name != s.node(n) {
					t.Errorf("%s: node %d is %+v", s.system, n, d)
				}
				seeders += int(d.Value)
			}
			if seeders != s.seeders || len(one.Ops) != leechers {
				t.Fatalf("%s: %d seeders, %d leechers", s.system, seeders, len(one.Ops))
			}
			var times []float64
			for _, op := range one.Ops {
				want := s.took(i/s.repetition, i%s.repetition, int(op.Worker))
				if got := time.Duration(op.LastByte - op.Start); got != want || op.Kind != record.OpFetch ||
					op.Length != s.size || op.Bytes != s.size || op.Intended != op.Start {
					t.Errorf("%s: node %d took %v, want %v: %+v", s.system, op.Worker, got, want, op)
				}
				times = append(times, want.Seconds())
			}
			slices.Sort(times)
			for key, share := range map[string]float64{"time_median": 0.5, "time_p75": 0.75, "time_last": 1} {
				want := times[int(math.Ceil(share*float64(leechers)))-1]
				if got := one.Trial.Metrics[key]; math.Abs(got/want-1) > 1e-9 {
					t.Errorf("%s: %s %v, want %v", s.system, key, got, want)
				}
			}
			// A mark for each percent, and none that goes back.
			marks := map[int]int64{}
			for _, m := range one.Marks {
				if m.Verified <= marks[m.Node] || m.Before > m.Start || m.Complete != (m.Verified == s.size) ||
					m.Written != -1 || m.Peers != -1 {
					t.Errorf("%s: %+v after %d", s.system, m, marks[m.Node])
				}
				marks[m.Node] = m.Verified
			}
			if n := len(one.Marks) / leechers; n < 99 || n > 102 || len(marks) != leechers {
				t.Errorf("%s: %d marks for each of %d leechers", s.system, n, len(marks))
			}
		}
	}
}

// All forms of the same log give the same run.
func TestFormsOfALog(t *testing.T) {
	both := append(codexStudy.logs(), delugeStudy.logs()...)
	expected, _ := importedLogs(t, both)
	if len(expected) != 8 {
		t.Fatalf("%d trials", len(expected))
	}
	// As kubectl prints it: pod after pod.
	prefixed := func(before, after string) (lines []string) {
		sorted := slices.Clone(both)
		slices.SortStableFunc(sorted, func(a, b logged) int { return strings.Compare(a.pod, b.pod) })
		for _, l := range sorted {
			lines = append(lines, before+l.pod+after+l.text())
		}
		return lines
	}
	dir := t.TempDir()
	split(t, filepath.Join(dir, "e-codex"), codexStudy.logs())
	split(t, filepath.Join(dir, "e-deluge"), delugeStudy.logs())
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	plain := strings.Join(plainLog(both...), "\n") + "\n"
	for name, files := range map[string][]string{
		"two files": {logFile(t, "a.log", plainLog(codexStudy.logs()...)...),
			logFile(t, "b.log", plainLog(delugeStudy.logs()...)...)},
		"kubectl":           {logFile(t, "raw-logs.log", prefixed("[pod/", "/main] ")...)},
		"the study's dump":  {logFile(t, "dump.log", prefixed("[[", "]] ")...)},
		"tables":            {dir},
		"gzip":              {gzipped(t, "x.log.gz", []byte(plain))},
		"archive of tables": {gzipped(t, "g1.tar.gz", archive.Bytes())},
	} {
		got, res := imported(t, files...)
		if d := cmp.Diff(expected, factsOfTrials(t, got)); d != "" {
			t.Errorf("%s (-want +got):\n%.2000s", name, d)
		}
		if res.Counts.Unused+res.Counts.Duplicates != 0 || len(res.Left) > 0 {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

func gzipped(t *testing.T, name string, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	must(t, z.Close())
	file := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(file, b.Bytes(), 0o644))
	return file
}

// A log that is damaged in ways that lose nothing gives the same run, and what
// was wrong with it is said.
func TestADamagedLog(t *testing.T) {
	whole, _ := importedLogs(t, delugeStudy.logs())
	lines := plainLog(delugeStudy.logs()...)
	cut := lines[7][:len(lines[7])-9]
	second := slices.Clone(lines[1:]) // out of order, and each line twice
	slices.Reverse(second)
	lines = append(lines, second...)
	lines = append(lines, strings.Repeat("x", 3*longest)+cut, cut, cut[:strings.Index(cut, ">>")+5],
		`>>{"entry_type":"metric","name":"x","timestamp":"2025-02-20T10:00:00Z"}`, `>>{"entry_type":"metric"}`,
		`>>{"entry_type":"download_metric","timestamp":"2025-02-20T10:00:00Z","node":"deluge-nodes-1"}`,
		`>>{"entry_type":"download_metric","timestamp":"yesterday","node":"n","value":1,"dataset_name":"dataset-0-0"}`,
		`>>{"entry_type":"download_metric","timestamp":"2025-02-20T10:00:00Z","node":"stranger",`+
			`"value":1,"dataset_name":"dataset-0-0"}`)
	got, res := imported(t, logFile(t, "y.log", lines...))
	if d := cmp.Diff(whole, factsOfTrials(t, got)); d != "" {
		t.Errorf("(-want +got):\n%.2000s", d)
	}
	c := res.Counts
	// The two plain records of 10 lines are no records; of the configuration the second is not one more.
	if want := int64(len(delugeStudy.logs()) - 1); c.Duplicates != want || c.Unused != 8 {
		t.Errorf("%d duplicates of %d: %+v", c.Duplicates, want, c)
	}
	if words := res.Words(); len(words) < 2 {
		t.Errorf("it is said: %q", words)
	}
}

// Leechers whose end is missing are not dropped, and say why.
func TestUnfinishedLeechers(t *testing.T) {
	s := delugeStudy
	s.sets, s.repetition = 1, 1
	victim := s.node(3)
	late := func(r map[string]any) bool {
		return r["entry_type"] == "download_metric" && r["node"] == victim &&
			r["timestamp"].(string) > stamp(s.begin.Add(4*time.Second))
	}
	ends := func(r map[string]any) bool {
		return r["entry_type"] == "experiment_status" || r["stage"] == "deleting" || r["stage"] == "downloading" &&
			r["type"] == "end"
	}
	failing := func(why string) []logged {
		all := without(s.logs(), late)
		for i, l := range all {
			if ends(l.record) && l.record["stage"] != "deleting" {
				all[i].record = maps.Clone(l.record)
				all[i].record["error"] = why
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		logs    []logged
		outcome record.Outcome
		class   string
	}{
		"lost records": {without(s.logs(), late), record.InFlight, classLost},
		"log ends": {without(s.logs(), func(r map[string]any) bool { return late(r) || ends(r) }), record.InFlight,
			classCut},
		"deadline": {failing("Download (1, x) did not complete in time."), record.Deadline, "deadline"},
		"error":    {failing("connection refused"), record.InFlight, classEnded},
		"nothing came": {without(s.logs(), func(r map[string]any) bool {
			return r["entry_type"] == "download_metric" && r["node"] == victim || ends(r)
		}), record.InFlight, classCut},
	} {
		all, res := importedLogs(t, c.logs)
		if len(all) != 1 || res.Unfinished != 1 || res.Leechers != 3 {
			t.Fatalf("%s: %+v", name, res)
		}
		i := slices.IndexFunc(all[0].Ops, func(op record.Op) bool { return op.Worker == 3 })
		op := all[0].Ops[i]
		if op.Outcome != c.outcome || op.Class != c.class || op.Bytes >= op.Length ||
			(op.Bytes == 0) != (op.FirstByte == 0) || (op.Bytes == 0) != (name == "nothing came") {
			t.Errorf("%s: %+v", name, op)
		}
		_, last := all[0].Trial.Metrics["time_last"]
		_, quarter := all[0].Trial.Metrics["time_p25"]
		if last || !quarter {
			t.Errorf("%s: a time of the last leecher, or none of those that completed: %v", name, all[0].Trial.Metrics)
		}
		if all[0].Trial.Outcomes["ok"] != 2 || !all[0].Trial.Valid() {
			t.Errorf("%s: %+v", name, all[0].Trial)
		}
	}
}

func TestTrialsThatAreMissingOrWithoutRequests(t *testing.T) {
	s := delugeStudy
	logs := without(s.logs(), func(r map[string]any) bool {
		id, _ := r["request_id"].(string)
		dataset, _ := r["dataset_name"].(string)
		return strings.Contains(id+dataset, "dataset-1-1") || r["name"] == "leech" &&
			strings.Contains(id, "dataset-0-1")
	})
	all, res := importedLogs(t, logs)
	if len(all) != 3 || res.Absent != 1 || all[1].Trial.State != record.Failed ||
		!strings.Contains(all[1].Trial.Error, "dataset-0-1") || !all[2].Trial.Valid() {
		t.Errorf("%+v\n%+v", res, all)
	}
}

// A clock that is behind makes a trial invalid: its times are wrong.
func TestClocksThatDisagree(t *testing.T) {
	s := codexStudy
	s.sets, s.repetition = 1, 1
	logs := s.logs()
	for i, l := range logs {
		if l.record["entry_type"] == "download_metric" && l.record["node"] == s.node(2) {
			at, err := time.Parse(time.RFC3339Nano, l.record["timestamp"].(string))
			must(t, err)
			logs[i].record["timestamp"] = stamp(at.Add(-time.Minute))
		}
	}
	all, _ := importedLogs(t, logs)
	got := all[0].Trial
	if !slices.Equal(got.Invalid, []string{record.ReasonClocks}) ||
		!strings.Contains(strings.Join(got.Notes, " "), s.node(2)) {
		t.Errorf("%+v", got)
	}
}

// The study's agent for Codex never logs the last bytes of a file whose size is
// no multiple of a hundredth; one for Deluge logs a piece again that was bad.
func TestWhatTheAgentsLog(t *testing.T) {
	s := codexStudy
	s.size, s.sets, s.repetition = 1<<20+77, 1, 1
	all, res := importedLogs(t, s.logs())
	if res.Unfinished != 0 || all[0].Ops[0].Bytes != s.size {
		t.Errorf("%+v %+v", res, all[0].Ops)
	}
	d := delugeStudy
	d.sets, d.repetition = 1, 1
	logs := d.logs()
	i := slices.IndexFunc(logs, func(l logged) bool { return l.record["entry_type"] == "download_metric" })
	again := logged{logs[i].pod, maps.Clone(logs[i].record)}
	again.record["timestamp"] = stamp(d.begin.Add(3*time.Second + 10*time.Millisecond))
	all, res = importedLogs(t, slices.Insert(logs, i, again))
	if res.Unfinished != 0 || all[0].Ops[0].Bytes != d.size {
		t.Errorf("%+v %v", res, all[0].Trial.Notes)
	}
}

func TestThePlanOfAnImport(t *testing.T) {
	large := delugeStudy
	large.nodes, large.begin = 8, large.begin.Add(time.Hour)
	all := append(codexStudy.logs(), delugeStudy.logs()...)
	r, _ := imported(t, logFile(t, "x.log", plainLog(append(all, large.logs()...)...)...))
	p, err := plan.LoadPlan(r.Plan())
	must(t, err)
	if len(p.Cells) != 3 || p.Blocks != 4 || p.Experiment.Baseline != "deluge" || p.Imported == nil ||
		!slices.Equal(p.Imported.From, []string{"x.log"}) || len(p.Imported.Unknown) < 4 {
		t.Errorf("%+v", p)
	}
	trials, err := r.Trials()
	must(t, err)
	n := map[string]int{}
	for _, tr := range trials {
		n[tr.Cell]++
	}
	for _, c := range p.Cells {
		if n[c.ID] != 4 || c.Disseminate.Nodes-c.Disseminate.Seeders < 3 {
			t.Errorf("cell %s has %d trials: %+v", c.ID, n[c.ID], c)
		}
	}
}

// Nodes of two experiments may have the same names: the file that a metric is
// in, and the time, tell whose it is.
func TestNodesOfTheSameNames(t *testing.T) {
	other := delugeStudy
	other.begin, other.rate = other.begin.Add(time.Second), other.rate/4
	later := delugeStudy
	later.begin = later.begin.Add(time.Hour)
	r, res := imported(t, logFile(t, "a.log", plainLog(append(delugeStudy.logs(), later.logs()...)...)...),
		logFile(t, "b.log", plainLog(other.logs()...)...))
	if res.Experiments != 3 || res.Trials != 12 || res.Unfinished != 0 ||
		res.Counts.Unused+res.Counts.Duplicates != 0 {
		t.Errorf("%+v", res)
	}
	slow := 0
	for _, one := range factsOfTrials(t, r) {
		if one.Trial.Metrics["time_last"] > delugeStudy.took(0, 0, 0).Seconds()*2.1 {
			slow++
		}
	}
	if slow != 4 {
		t.Errorf("%d trials are of the slow experiment, which has 4", slow)
	}
}

// An import that is interrupted, or whose file has no experiment, ends too early or is compressed
// too often, leaves nothing.
func TestImportsThatAreRefused(t *testing.T) {
	whole := gzipped(t, "x.log.gz", []byte(strings.Join(plainLog(codexStudy.logs()...), "\n")))
	b, err := os.ReadFile(whole)
	must(t, err)
	cut, nested := logFile(t, "y.log.gz", string(b[:len(b)/2])), whole
	for range deepest {
		nested = gzipped(t, "nested.gz", b)
		b, err = os.ReadFile(nested)
		must(t, err)
	}
	noConfig := without(codexStudy.logs(), func(r map[string]any) bool { return r["experiment_set_id"] != nil })
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "run")
	both := t.TempDir() // the same log twice
	for _, name := range []string{"a.log", "b.log"} {
		must(t, os.WriteFile(filepath.Join(both, name), []byte(strings.Join(plainLog(codexStudy.logs()...), "\n")), 0o644))
	}
	for _, c := range []struct {
		ctx     context.Context
		file    string
		nothing bool // it is ErrNothing
		want    string
	}{
		{t.Context(), logFile(t, "x.log", "hello"), true, ""},
		{t.Context(), logFile(t, "x.log", plainLog(noConfig...)...), true, ""},
		{t.Context(), both, false, "b.log hold the same experiment"},
		{t.Context(), "/nonexistent", false, "no such file"},
		{t.Context(), cut, false, "unexpected EOF"},
		{t.Context(), nested, false, "nested:"},
		{interrupted, whole, false, "canceled"},
	} {
		_, err := Import(c.ctx, []string{c.file}, Options{Dir: dir, Measure: disseminate.TimesOf})
		_, made := os.Stat(dir)
		if err == nil || errors.Is(err, ErrNothing) != c.nothing || !strings.Contains(err.Error(), c.want) ||
			made == nil {
			t.Errorf("%v, want %s; its directory: %v", err, c.want, made)
		}
	}
}

// FuzzFind finds no line that breaks the reading of records.
func FuzzFind(f *testing.F) {
	for _, l := range codexStudy.logs()[:12] {
		f.Add(l.text())
	}
	f.Add(`x>>{"entry_type":"download_metric","value":1e999}>>{`)
	f.Fuzz(func(t *testing.T, line string) {
		e, found, usable := find(line)
		if found && usable && e.config == nil && e.Timestamp.IsZero() {
			t.Errorf("a record without a time: %+v", e)
		}
	})
}

// Systems are compared by data set: what is missing of one moves nothing.
func TestTrialsArePairedByTheirDataSet(t *testing.T) {
	all := without(append(codexStudy.logs(), delugeStudy.logs()...), func(r map[string]any) bool {
		dataset, _ := r["dataset_name"].(string)
		id, _ := r["request_id"].(string)
		kind, _ := r["node"].(string)
		return dataset == "dataset-0-1" && strings.HasPrefix(kind, "codex") || strings.Contains(id, "dataset-0-1") &&
			strings.HasPrefix(strings.Trim(r["destination"].(string), `"`), "codex")
	})
	trials, res := importedLogs(t, all)
	if res.Trials != 7 || res.Absent != 1 {
		t.Fatalf("%+v", res)
	}
	blocks := map[string][]int{}
	for _, one := range trials {
		system, _, _ := strings.Cut(one.Trial.Details[0].Name, "-")
		blocks[system] = append(blocks[system], one.Trial.Block)
	}
	if !slices.Equal(blocks["codex"], []int{0, 2, 3}) || !slices.Equal(blocks["deluge"], []int{0, 1, 2, 3}) {
		t.Errorf("blocks %v", blocks)
	}
}

// Experiments of the same cell follow each other, and what has no place of its own
// takes none of another's.
func TestBlocksOfMergedExperiments(t *testing.T) {
	c := &config{System: "codex", SeederSets: 2, Repetitions: 2}
	all := []*experiment{
		{config: c, trials: []*trial{{set: 0, repetition: 0}, {set: 0, repetition: 0}, {set: 1, repetition: 1}}},
		{config: c, trials: []*trial{{set: 0, repetition: 1}, {set: 5, repetition: 0}}},
	}
	blocks := blocksOf(all)
	var got []int
	for _, x := range all {
		for _, t := range x.trials {
			got = append(got, blocks[t])
		}
	}
	if !slices.Equal(got, []int{0, 1, 3, 5, 2}) {
		t.Errorf("blocks %v", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
