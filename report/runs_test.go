package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/report/page"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

const experimentFile = `
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
	going   bool // its writer lives
	killed  bool // its writer is gone, and has not said that the run ends
	summary bool // summary.json, as plimsoll run leaves it
	gate    string
}

func (o written) write(t testing.TB, dir string) {
	t.Helper()
	file := fmt.Sprintf(experimentFile, o.title)
	if o.gate != "" {
		file += "gates: [" + o.gate + "]\n"
	}
	plan, err := synthetic.Plan(file)
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	run, err := record.Create(dir, raw, map[string]string{"plimsoll": o.version, "environment": `{"kernel":"6.1.0"}`},
		retrieve.Scenario{}.Metrics())
	must(t, err)
	t.Cleanup(func() { run.Close() })
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(o.at) * time.Hour)
	must(t, run.Event(record.Event{At: begun, Kind: "phase", What: "run begins"}))
	rng := rand.New(rand.NewPCG(uint64(o.at), 3))
	for block := range plan.Blocks {
		for _, c := range plan.Cells {
			w, err := run.Begin(c.ID, block, false, begun)
			must(t, err)
			rate := 1e6 * float64(c.Retrieve.Concurrency) * math.Exp(0.03*rng.NormFloat64())
			must(t, w.End(record.Trial{Seconds: 1, Metrics: map[string]float64{"throughput": rate}}))
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
		must(t, atomicfile.Write(filepath.Join(dir, "summary.json"),
			func(w io.Writer) error { return page.JSON(w, buildDir(t, dir)) }))
	}
}

// The index has each run in reach, served and as a file, and what cannot be read, too.
func TestIndex(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 8 {
		written{title: "Nightly", at: i, version: fmt.Sprintf("v1.%d", i), summary: i%2 == 0}.write(t,
			filepath.Join(root, "nightly", fmt.Sprintf("run-%d", i)))
	}
	written{title: "Now", at: 20, version: "v2", going: true}.write(t, filepath.Join(root, "now & then"))
	written{title: "Too deep", at: 30}.write(t, filepath.Join(root, "a", "b", "run"))
	must(t, os.MkdirAll(filepath.Join(root, "broken"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "broken", "run.db"), []byte("not a database"), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "broken", "plan.json"), []byte("{}"), 0o644))
	must(t, os.Symlink(facts.Unpack(t, "retrieve"), filepath.Join(root, "elsewhere")))
	t.Run("rows", func(t *testing.T) { indexOfRuns(t, root) })
	t.Run("served", func(t *testing.T) { runsAreServed(t, root) })
	t.Run("file", func(t *testing.T) { indexAsAFile(t, root) })
}

// rowsOf are so many rows of the index of a directory.
func rowsOf(t *testing.T, root string, want int) []page.IndexRow {
	t.Helper()
	index, err := readIndex(root)
	must(t, err)
	if len(index.Rows) != want {
		t.Fatalf("%d runs, want %d: %+v", len(index.Rows), want, index.Rows)
	}
	return index.Rows
}

func indexOfRuns(t *testing.T, root string) {
	rows := rowsOf(t, root, 10)
	first := rows[0]
	if first.ID != "now & then" || first.Run.State != "running" || first.Scenario != "retrieve" ||
		first.Plimsoll != "v2" || len(first.Systems) != 2 || first.Run.Valid != 36 {
		t.Errorf("the latest run is %+v", first)
	}
	if last := rows[9]; last.ID != "broken" || last.Error == "" {
		t.Errorf("what cannot be read is %+v", last)
	}
	for _, r := range rows[1:9] {
		if r.Title != "Nightly" || r.Run.Valid != 36 || r.Verdict.Text == "" || r.Run.State != "complete" {
			t.Errorf("%+v", r)
		}
	}
}

// What gates say is in the row of the run, whether it is read from summary.json
// or computed, and alone where there are gates.
func TestIndexTellsGates(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rules := map[string]string{analysis.GatePass: "throughput > 1kB/s", analysis.GateFail: "throughput > 1GB/s",
		analysis.GateInconclusive: "throughput > 8MB/s where concurrency == 8 and system == nginx",
		analysis.GateBase:         "no worse than BASE by 5%"}
	for state, rule := range rules {
		for _, summary := range []bool{true, false} {
			written{title: state, version: "v1", gate: rule, summary: summary}.write(t,
				filepath.Join(root, state, fmt.Sprint("summary-", summary)))
		}
	}
	for _, r := range rowsOf(t, root, 2*len(rules)) {
		if r.Gates != r.Title || strings.Contains(r.Verdict.Text, rules[r.Title]) != (r.Title != analysis.GatePass) {
			t.Errorf("%s: gates %q, verdict %q", r.ID, r.Gates, r.Verdict.Text)
		}
	}
	var b bytes.Buffer
	must(t, WriteIndex(&b, root))
	for _, state := range []string{"fail", "pass", "inconclusive"} {
		if n := strings.Count(b.String(), ">"+state+"</td>"); n != 2 {
			t.Errorf("the page says %s of %d runs, want 2", state, n)
		}
	}
}

// A summary that is older than the database is not believed.
func TestIndexMistrustsAnOldSummary(t *testing.T) {
	t.Parallel()
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
		if got := rowsOf(t, filepath.Dir(dir), 1)[0].Title; got != title {
			t.Errorf("with a database that is %v newer the title is %q, want %q", age, got, title)
		}
	}
}

func runsAreServed(t *testing.T, root string) {
	h := Runs(root)
	body := wantStatus(t, h, "/", "localhost", http.StatusOK)
	checkAccess(t, []byte(body))
	var links []string
	doc, err := html.Parse(strings.NewReader(body))
	must(t, err)
	for n := range doc.Descendants() {
		if href := attr(n, "href"); strings.HasSuffix(href, "/report.html") {
			links = append(links, strings.TrimPrefix(href, "."))
		}
	}
	if len(links) != 10 {
		t.Errorf("links %q", links)
	}
	for _, l := range links {
		if strings.Contains(l, "broken") {
			wantStatus(t, h, l, "localhost", http.StatusInternalServerError)
		} else {
			contains(t, wantStatus(t, h, l, "localhost", http.StatusOK), "<title>N") // Nightly or Now
		}
	}
	for _, path := range []string{"/report.html", "/nightly/report.html", "/nightly/run-1", "/nightly/run-1/run.db",
		"/a/b/run/report.html", "/elsewhere/report.html", "/%2e%2e/report.html", "/nightly/..%2f..%2fetc/report.html",
		"/nightly/%2e%2e/nightly/run-1/report.html", "//etc/report.html", "/.%2fnightly/run-1/report.html", "/metrics"} {
		if w := get(t, h, path, "localhost"); w.Code == 200 || w.Code == 500 {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/", "/nightly/run-1/report.html"} {
		wantStatus(t, h, path, "evil.example", http.StatusForbidden)
	}
}

// The index as a file has the same, and leads to the reports.
func indexAsAFile(t *testing.T, root string) {
	var b bytes.Buffer
	must(t, WriteIndex(&b, root))
	checkAccess(t, b.Bytes())
	if strings.Contains(b.String(), root) || !strings.Contains(b.String(), "<h1>Runs in "+filepath.Base(root)+"</h1>") {
		t.Error("the page names more of the directory's path than its name")
	}
	contains(t, b.String(), `href="./nightly/run-5/report.html"`, `href="./now%20&amp;%20then/report.html"`,
		"connect-src 'none'")
}

// A run whose writer is gone is not running, whatever it was when it was last read.
func TestIndexOfKilledRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "killed")
	written{title: "Killed", killed: true}.write(t, dir)
	lock, err := os.Open(dir)
	must(t, err)
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))      // as its writer has it
	for _, want := range []string{"running", "complete"} { // all its trials were done
		if got := rowsOf(t, root, 1)[0].Run; got.State != want || got.Done != 36 {
			t.Errorf("%s with %d trials, want %s with 36", got.State, got.Done, want)
		}
		lock.Close()
	}
}
