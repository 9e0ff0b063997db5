package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

const indexFile = `
scenario: retrieve
title: %s
systems: [nginx, boxo]
baseline: nginx
link: {rate: 1Gbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8, 64], range: 1MiB, requests: 60}
repetitions: 6
warmup: 0
`

// written is a small run for an index: medians only, without operations.
type written struct {
	title   string
	at      int // hours after the first
	version string
	factor  map[string]float64 // on the throughput of a system; 1 where it is missing
	going   bool               // its writer lives
	killed  bool               // its writer is gone, and has not said that the run ends
	failed  bool               // all trials are invalid
	summary bool               // summary.json, as plimsoll run leaves it
	gate    string
}

func (o written) write(t testing.TB, dir string) {
	t.Helper()
	file := fmt.Sprintf(indexFile, o.title)
	if o.gate != "" {
		file += "gates: [" + o.gate + "]\n"
	}
	plan, err := synthetic.Plan(file)
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	run, err := record.Create(dir, raw, map[string]string{"plimsoll": o.version, "environment": `{"kernel":"6.1.0"}`}, synthetic.Metrics())
	must(t, err)
	t.Cleanup(func() { run.Close() })
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(o.at) * time.Hour)
	must(t, run.Event(record.Event{At: begun, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(uint64(o.at), 3))
	for block := range plan.Blocks {
		for _, c := range plan.Cells {
			w, err := run.Begin(c.ID, block, false, begun)
			must(t, err)
			factor := o.factor[c.System]
			if factor == 0 {
				factor = 1
			}
			trial := record.Trial{Seconds: 1, Metrics: map[string]float64{"throughput": factor * 1e6 * float64(c.Retrieve.Concurrency) * math.Exp(0.03*rng.NormFloat64())}}
			if o.failed {
				trial.Invalid = []string{"generator-limited"}
			}
			must(t, w.End(trial))
		}
	}
	if o.going {
		return
	}
	if !o.killed {
		must(t, run.Event(record.Event{At: begun.Add(time.Minute), Kind: "phase", What: "run ends"}))
	}
	must(t, run.Close())
	if o.summary {
		must(t, atomicfile.Write(filepath.Join(dir, "summary.json"), buildDir(t, dir).WriteJSON))
	}
}

// someRuns are runs of two experiments, in which boxo becomes slower once.
func someRuns(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for i := range 8 {
		o := written{title: "Nightly", at: i, version: fmt.Sprintf("v1.%d", i), summary: i%2 == 0, factor: map[string]float64{}}
		if i >= 5 {
			o.factor["boxo"] = 0.8
		}
		o.write(t, filepath.Join(root, "nightly", fmt.Sprintf("run-%d", i)))
	}
	written{title: "Now", at: 20, version: "v2", going: true}.write(t, filepath.Join(root, "now & then"))
	must(t, os.MkdirAll(filepath.Join(root, "a", "b", "too-deep"), 0o755))
	written{title: "Hidden", at: 30}.write(t, filepath.Join(root, "a", "b", "run"))
	written{title: "Outside", at: 31}.write(t, filepath.Join(t.TempDir(), "run"))
	must(t, os.MkdirAll(filepath.Join(root, "broken"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "broken", "run.db"), []byte("not a database"), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "broken", "plan.json"), []byte("{}"), 0o644))
	must(t, os.Symlink(shared(t), filepath.Join(root, "elsewhere")))
	return root
}

func TestIndexOfRuns(t *testing.T) {
	root := someRuns(t)
	x := newIndexer(root)
	index, err := x.read(t.Context())
	must(t, err)
	if len(index.Runs) != 10 || len(index.Trends) != 1 {
		t.Fatalf("%d runs, want 10: %+v; %d trends, want 1", len(index.Runs), index.Runs, len(index.Trends))
	}
	first := index.Runs[0]
	if first.ID != "now & then" || first.Run.State != "running" || first.Scenario != "retrieve" || first.Plimsoll != "v2" || len(first.Systems) != 2 {
		t.Errorf("the latest run is %+v", first)
	}
	if last := index.Runs[9]; last.ID != "broken" || last.Error == "" {
		t.Errorf("what cannot be read is %+v", last)
	}
	for _, r := range index.Runs[1:9] {
		if r.Title != "Nightly" || r.Run.Valid != 36 || r.Verdict.Text == "" || r.Run.State != "complete" {
			t.Errorf("%+v", r)
		}
	}
	trend := index.Trends[0]
	if len(trend.Runs) != 8 || len(trend.Cells) != 6 || trend.Overall != 14 || trend.Single != 42 || trend.Runs[0].ID != "nightly/run-0" {
		t.Fatalf("%d runs, %d cells, %d and %d comparisons", len(trend.Runs), len(trend.Cells), trend.Overall, trend.Single)
	}
	if len(trend.Changes) == 0 {
		t.Fatal("a fall by a fifth is not found")
	}
	for _, c := range trend.Changes {
		if c.System != "boxo" || c.To != 5 || c.From != 4 || c.Better != -1 || c.Lo > 0.8 || c.Hi < 0.8 {
			t.Errorf("a change that was not made: %+v", c)
		}
	}
	if c := trend.Changes[0]; c.Where != "" || c.Cells != 3 {
		t.Errorf("not over all cells: %+v", c)
	}

	// What did not change is not read again, what did is.
	rows := map[string]*knownRun{}
	for id, k := range x.known {
		rows[id] = k
	}
	db := filepath.Join(root, "nightly", "run-3", "run.db")
	must(t, os.Chtimes(db, time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
	_, err = x.read(t.Context())
	must(t, err)
	for id, k := range x.known {
		if again := rows[id] != k; again != (id == "nightly/run-3") {
			t.Errorf("%s is read again: %v", id, again)
		}
	}
}

// What gates say stands in the row of the run, whether it is read from summary.json
// or computed, and alone where there are gates.
func TestIndexTellsGates(t *testing.T) {
	root := t.TempDir()
	rules := map[string]string{RulePass: "throughput > 1kB/s", RuleFail: "throughput > 1GB/s", RuleOpen: "throughput > 8MB/s where concurrency == 8 and system == nginx", RuleBase: "no worse than BASE by 5%"}
	for state, rule := range rules {
		for _, summary := range []bool{true, false} {
			written{title: state, version: "v1", gate: rule, summary: summary}.write(t, filepath.Join(root, state, fmt.Sprint("summary-", summary)))
		}
	}
	index, err := newIndexer(root).read(t.Context())
	must(t, err)
	if len(index.Runs) != 2*len(rules) {
		t.Fatalf("%d runs", len(index.Runs))
	}
	for _, r := range index.Runs {
		if r.Gates != r.Title || strings.Contains(r.Verdict.Text, rules[r.Title]) != (r.Title != RulePass) {
			t.Errorf("%s: gates %q, verdict %q", r.ID, r.Gates, r.Verdict.Text)
		}
	}
	page := func() string {
		var b bytes.Buffer
		must(t, WriteIndex(&b, root))
		return b.String()
	}
	if p := page(); !strings.Contains(p, `>gates</th>`) || strings.Count(p, `data-h="gates" class="t-bad">fail</td>`) != 2 || strings.Count(p, `class="t-good">pass</td>`) != 2 || strings.Count(p, `class="t-warn">cannot tell</td>`) != 2 {
		t.Error("the page does not tell the gates")
	}
	root = t.TempDir()
	written{title: "No gates", version: "v1"}.write(t, filepath.Join(root, "run"))
	if strings.Contains(page(), `>gates</th>`) {
		t.Error("a column of nothing")
	}
}

// An error is told, also by the trend, and gone as soon as its reason is.
func TestIndexForgetsErrors(t *testing.T) {
	root := t.TempDir()
	for i := range 4 {
		written{title: "Nightly", at: i, failed: i == 3, summary: true}.write(t, filepath.Join(root, fmt.Sprintf("run-%d", i)))
	}
	db := filepath.Join(root, "run-1", "run.db")
	x := newIndexer(root)
	look := func(trend int, note string) {
		t.Helper()
		index, err := x.read(t.Context())
		must(t, err)
		if len(index.Trends) != 1 || len(index.Trends[0].Runs) != trend || !slices.Contains(index.Notes, "The trend of Nightly lacks "+note+".") {
			t.Errorf("trends %+v, notes %q", index.Trends, index.Notes)
		}
	}
	info, err := os.Stat(db)
	must(t, err)
	raw, err := os.ReadFile(db)
	must(t, err)
	// The summary tells the row, so the trend alone finds the database broken; the
	// stamp of the database is the same before and after.
	must(t, os.WriteFile(db, bytes.Repeat([]byte("no"), len(raw)/2), 0o644))
	must(t, os.Chtimes(db, info.ModTime(), info.ModTime()))
	index, err := x.read(t.Context())
	must(t, err)
	if len(index.Notes) != 1 || !strings.Contains(index.Notes[0], "run-1 (cannot be read: ") || strings.Contains(index.Notes[0], root) || !strings.Contains(index.Notes[0], "run-3 (no trial is valid)") {
		t.Errorf("notes %q", index.Notes)
	}
	must(t, os.WriteFile(db, raw, 0o644))
	must(t, os.Chtimes(db, info.ModTime(), info.ModTime()))
	look(3, "run-3 (no trial is valid)")

	// A row likewise.
	must(t, os.Remove(filepath.Join(root, "run-1", "summary.json")))
	must(t, os.WriteFile(db, bytes.Repeat([]byte("no"), len(raw)/2), 0o644))
	later := info.ModTime().Add(time.Minute)
	must(t, os.Chtimes(db, later, later))
	index, err = x.read(t.Context())
	must(t, err)
	if !slices.ContainsFunc(index.Runs, func(r IndexRun) bool { return r.ID == "run-1" && r.Error != "" && !strings.Contains(r.Error, root) }) {
		t.Errorf("%+v", index.Runs)
	}
	must(t, os.WriteFile(db, raw, 0o644))
	must(t, os.Chtimes(db, later, later))
	look(3, "run-3 (no trial is valid)")
}

// Of a run that goes on nothing is computed but its counts, and a viewer who is
// gone waits for nothing; what was not read for him is read for the next.
func TestIndexDoesNotWait(t *testing.T) {
	root := t.TempDir()
	written{title: "Now", going: true}.write(t, filepath.Join(root, "now"))
	written{title: "Done", summary: true}.write(t, filepath.Join(root, "done"))
	x := newIndexer(root)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	index, err := x.read(gone)
	must(t, err)
	for _, r := range index.Runs {
		if !r.Waits {
			t.Errorf("read for a viewer who is gone: %+v", r)
		}
	}
	if len(index.Notes) != 1 || index.Notes[0] != "2 runs are still being read: look again in a moment." {
		t.Errorf("notes %q", index.Notes)
	}
	var b bytes.Buffer
	must(t, index.writePage(&b, root, "", true))
	if n := strings.Count(b.String(), ">still being read<"); n != 2 {
		t.Errorf("the page says so of %d runs", n)
	}
	index, err = x.read(t.Context())
	must(t, err)
	now := index.Runs[slices.IndexFunc(index.Runs, func(r IndexRun) bool { return r.ID == "now" })]
	if now.Waits || now.Error != "" || now.Run.State != "running" || now.Run.Valid != 36 || now.Verdict.Text != "36 of 36 trials done so far; its page has the numbers." {
		t.Errorf("%+v", now)
	}

	// What another viewer waits for holds nobody else.
	x = newIndexer(root)
	hold := make(chan struct{})
	x.reading.DoChan("row done", func() (any, error) { <-hold; return IndexRun{ID: "done", Title: "Held"}, nil })
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	index, err = x.read(short)
	must(t, err)
	for _, r := range index.Runs {
		if r.Waits != (r.ID == "done") {
			t.Errorf("while one is held: %+v", r)
		}
	}
	close(hold)
}

// A summary that is older than the database is not believed.
func TestIndexMistrustsAnOldSummary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	written{title: "Fresh", summary: true}.write(t, dir)
	file := filepath.Join(dir, "summary.json")
	raw, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, bytes.ReplaceAll(raw, []byte(`"Fresh"`), []byte(`"Cached"`)), 0o644))
	for title, age := range map[string]time.Duration{"Cached": -time.Minute, "Fresh": time.Minute} {
		at := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(file, at, at))
		must(t, os.Chtimes(filepath.Join(dir, "run.db"), at.Add(age), at.Add(age)))
		index, err := newIndexer(filepath.Dir(dir)).read(t.Context())
		must(t, err)
		if got := index.Runs[0].Title; got != title {
			t.Errorf("with a database that is %v newer the title is %q, want %q", age, got, title)
		}
	}
}

// A run in which half of the trials or more never came to the number is the worst
// change that there is, and not a gap.
func TestTrendOfWhatNeverEnds(t *testing.T) {
	root := t.TempDir()
	for i := range 4 {
		s := swarmTruth{later: time.Duration(i) * time.Hour}
		if i == 2 {
			s.leechers = func(c *experiment.Cell, _ int, line float64, all []leech) {
				for j := range all {
					if c.System == "boxo" {
						all[j] = leech{took: 4 * line, got: 0.5, outcome: record.Deadline}
					}
				}
			}
		}
		must(t, os.Rename(s.write(t), filepath.Join(root, fmt.Sprintf("run-%d", i))))
	}
	index, err := newIndexer(root).read(t.Context())
	must(t, err)
	if len(index.Trends) != 1 {
		t.Fatalf("%d trends", len(index.Trends))
	}
	trend := index.Trends[0]
	if len(trend.Changes) != 2 {
		t.Fatalf("changes %+v, want one to the outage and one from it", trend.Changes)
	}
	gone, back := trend.Changes[0], trend.Changes[1]
	if gone.System != "boxo" || gone.From != 1 || gone.To != 2 || gone.Better != -1 || gone.Never != "later" || gone.Value.Known() {
		t.Errorf("to the outage: %+v", gone)
	}
	if back.From != 2 || back.To != 3 || back.Better != 1 || back.Never != "earlier" {
		t.Errorf("from the outage: %+v", back)
	}
	f := trend.figure("x")
	crosses := 0
	for _, p := range f.Panels {
		for _, v := range p.Spec["data"].(spec)["values"].([]spec) {
			if v["kind"] == "never" && v["y"].(float64) > 0 && v["x"] == 2 {
				crosses++
			}
		}
	}
	if crosses != 1 || f.Legend[len(f.Legend)-1].Mark != "never" {
		t.Errorf("%d crosses, legend %+v", crosses, f.Legend)
	}
	for _, row := range f.Table.Rows {
		if want := row[0].Text == "run-2" && row[3].Text == "boxo"; (row[5].Text == "never") != want {
			t.Errorf("row %+v", row)
		}
	}
	var b bytes.Buffer
	must(t, WriteIndex(&b, root))
	if !strings.Contains(b.String(), "half or more of the trials never came to it, worse") {
		t.Error("the page does not tell")
	}
}

// nullSeries are runs in which nothing changes.
func nullSeries(seed uint64, runs, trials int) []*knownRun {
	rng := rand.New(rand.NewPCG(seed, 9))
	var all []*knownRun
	for range runs {
		k := &knownRun{row: IndexRun{Title: "null", Scenario: "retrieve"}, points: &trendRun{metric: record.Metric{Key: "throughput", Name: "throughput", Unit: "B/s", Better: record.Higher}}}
		for cell := range 6 {
			var s Summary
			for block := range trials {
				s.values, s.blocks = append(s.values, math.Exp(0.2*rng.NormFloat64())), append(s.blocks, block)
			}
			s.N, s.Median = trials, Num(middle(s.values))
			k.points.cells = append(k.points.cells, trendCell{key: [32]byte{byte(cell)}, system: []string{"a", "b"}[cell%2], where: fmt.Sprint(cell / 2), summary: s})
		}
		all = append(all, k)
	}
	return all
}

// Runs in which nothing changes show a change in few of their steps: of each of
// the two families, all cells of a system and cell by cell, in up to 5 %. A test
// without correction would show one in every third.
func TestTrendsOfNothing(t *testing.T) {
	single, overall, steps := 0, 0, 0
	for seed := range uint64(40) {
		trend := trendOf(nullSeries(seed, 20, 8))
		steps += len(trend.Runs) - 1
		ofCells, ofSystems := map[int]bool{}, map[int]bool{}
		for _, c := range trend.Changes {
			if c.Where == "" {
				ofSystems[c.To] = true
			} else {
				ofCells[c.To] = true
			}
		}
		single, overall = single+len(ofCells), overall+len(ofSystems)
	}
	// 38 of 760 on average at most; 58 or more come once in a thousand times.
	if single > 57 || overall > 57 {
		t.Errorf("of %d steps in which nothing changes %d show a change of a cell, %d of a system", steps, single, overall)
	}
}

// What is shown of a step stays shown, however many runs come after it.
func TestTrendsAreNotRewritten(t *testing.T) {
	runs := nullSeries(1, 40, 8)
	for i, k := range runs {
		if i >= 2 {
			s := &k.points.cells[3].summary
			for j := range s.values {
				s.values[j] *= 0.4
			}
			s.Median = Num(middle(s.values))
		}
	}
	early, late := trendOf(runs[:3]).Changes, trendOf(runs).Changes
	if !slices.ContainsFunc(early, func(c TrendChange) bool { return c.Where == "1" && c.System == "b" && c.To == 2 }) {
		t.Fatalf("a fall to 0.4 is not shown: %+v", early)
	}
	if len(late) < len(early) {
		t.Fatalf("%d changes of 3 runs, %d of 40", len(early), len(late))
	}
	for i, c := range early {
		if late[i] != c {
			t.Errorf("change %d was %+v, is %+v", i, c, late[i])
		}
	}
}

// A run without a cell of another has no place in the figure, and runs of one
// minute are told apart by their names.
func TestTrendHasOnlyRunsThatShareACell(t *testing.T) {
	runs := nullSeries(4, 3, 8)
	for i, k := range runs {
		k.row.ID, k.row.Plimsoll = fmt.Sprintf("ab/run-%d", i), "v1"
	}
	for i := range runs[1].points.cells {
		runs[1].points.cells[i].key[1] = 1
	}
	trend := trendOf(runs)
	if len(trend.Runs) != 2 || trend.Overall != 2 || trend.Single != 6 {
		t.Fatalf("%d runs, %d and %d comparisons", len(trend.Runs), trend.Overall, trend.Single)
	}
	if notes := leftOutOfTrend(runs, trend); len(notes) != 1 || !strings.HasPrefix(notes[0], "The trend of null lacks ab/run-1 (no cell") {
		t.Errorf("notes %q", notes)
	}
	if f := trend.figure("x"); f.N != "n = 96 valid trials of 2 runs" || !slices.Equal(trend.labels(), []string{"run-0", "run-2"}) {
		t.Errorf("%s; labels %q", f.N, trend.labels())
	}
}

// Where the trials are too few for a ring, the figure says so.
func TestTrendsSayWhatTheyCannotShow(t *testing.T) {
	for trials, want := range map[int]int{5: 2, 8: 0} { // 6 × 0.008 = 0.048 passes; of 7 cells nothing would
		runs := nullSeries(2, 3, trials)
		for _, k := range runs {
			more := k.points.cells[5]
			more.key = [32]byte{9}
			more.where = "3"
			k.points.cells = append(k.points.cells, more)
		}
		trend := trendOf(runs)
		if len(trend.Blind) != want {
			t.Errorf("%d trials: steps %v cannot show a cell, want %d of them", trials, trend.Blind, want)
		}
		f := trend.figure("x")
		if said := strings.Contains(f.Reads, "In 2 of the 2 steps the trials are too few"); said != (want > 0) {
			t.Errorf("%d trials: %s", trials, f.Reads)
		}
	}
}

func TestRunsAreServed(t *testing.T) {
	root := someRuns(t)
	h := Runs(root)
	w := get(t, h, "/", "localhost")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	body := w.Body.Bytes()
	checkAccess(t, body)
	var links []string
	doc, err := html.Parse(bytes.NewReader(body))
	must(t, err)
	walk(doc, func(n *html.Node) {
		if href := attr(n, "href"); strings.HasPrefix(href, "run/") {
			links = append(links, href)
		}
	})
	if len(links) != 10 {
		t.Errorf("links %q", links)
	}
	for _, l := range links {
		want := 200
		if strings.Contains(l, "broken") {
			want = http.StatusInternalServerError
		}
		if w := get(t, h, "/"+l, "localhost"); w.Code != want || want == 200 && !strings.Contains(w.Body.String(), "data-live") {
			t.Errorf("%s: %d %.200s", l, w.Code, w.Body)
		}
	}
	if w := get(t, h, "/run/nightly/run-1/events", "localhost"); w.Code != 200 || !strings.Contains(w.Body.String(), "event: end") {
		t.Errorf("events: %d %.100s", w.Code, w.Body)
	}
	for _, path := range []string{"/run/", "/run/nightly/", "/run/nightly/run-1", "/run/nightly/run-1/run.db", "/run/nightly/run-1/metrics", "/run/a/b/run/", "/run/elsewhere/", "/run/%2e%2e/", "/run/nightly/..%2f..%2fetc/",
		"/run/nightly/%2e%2e/nightly/run-1/", "/run//etc/", "/run/.%2fnightly/run-1/", "/metrics", "/events"} {
		if w := get(t, h, path, "localhost"); w.Code == 200 || w.Code == 500 {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/", "/run/nightly/run-1/"} {
		if w := get(t, h, path, "evil.example"); w.Code != http.StatusForbidden {
			t.Errorf("%s by another name: %d", path, w.Code)
		}
	}
	if w := get(t, h, "/?scenario=sync", "localhost"); w.Code != 200 || strings.Contains(w.Body.String(), `href="run/`) {
		t.Error("the filter lets runs of another scenario through")
	}
}

// The index as a file has the same, and leads to the reports.
func TestIndexAsAFile(t *testing.T) {
	root := someRuns(t)
	var b bytes.Buffer
	must(t, WriteIndex(&b, root))
	checkAccess(t, b.Bytes())
	if strings.Contains(b.String(), root) || !strings.Contains(b.String(), "<h1>Runs in "+filepath.Base(root)+"</h1>") {
		t.Error("the page names more of the directory's path than its name")
	}
	for _, want := range []string{`href="./nightly/run-5/report.html"`, `href="./now%20&amp;%20then/report.html"`, "connect-src &#39;none&#39;"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestIndexInChromium(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.html")
	var b bytes.Buffer
	must(t, WriteIndex(&b, someRuns(t)))
	must(t, os.WriteFile(path, b.Bytes(), 0o644))
	s := look(t, "file://"+path)
	for _, n := range append(append(s.Noise, s.Nameless...), s.Unfocused...) {
		t.Error(n)
	}
	if s.Figures != 1 || s.Pictures != s.Plots || s.Widths["360"] != 360 || s.Sideways != 0 {
		t.Errorf("%d figures, %d of %d pictures, widths %v, the list of runs is %d px wider than a phone", s.Figures, s.Pictures, s.Plots, s.Widths, s.Sideways)
	}
}

// A run whose writer is gone is not running, whatever it was when it was last read.
func TestIndexOfKilledRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "killed")
	written{title: "Killed", killed: true}.write(t, dir)
	lock, err := os.Open(dir)
	must(t, err)
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX)) // as its writer has it
	x := newIndexer(root)
	for _, want := range []string{"running", "complete"} { // all its trials were done
		index, err := x.read(t.Context())
		must(t, err)
		if got := index.Runs[0].Run; got.State != want || got.Done != 36 {
			t.Errorf("%s with %d trials, want %s with 36", got.State, got.Done, want)
		}
		lock.Close()
	}
}
