package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// pollCatalog is what a collecting experiment of these tests may name.
var pollCatalog = experiment.Catalog{
	{Name: "siad", Modes: []string{"attach"}, Summary: "Sia"},
	{Name: "kubo", Modes: []string{"attach"}, Summary: "IPFS"},
}

// pollRun makes a run that polls one system; its trial is left running.
func pollRun(t *testing.T, use string, epoch time.Time) (dir string, run *record.Run, w *record.TrialWriter) {
	t.Helper()
	e, err := experiment.Parse("collect.yaml", []byte(fmt.Sprintf("scenario: collect\nsystems: [{use: %s, name: ours, mode: attach}]\ncollect: {every: 1m}\n", use)), nil, pollCatalog)
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	raw, err := plan.Marshal()
	must(t, err)
	dir = filepath.Join(t.TempDir(), "run")
	run, err = record.Create(dir, raw, map[string]string{"plimsoll": "v0.0.0-test"}, nil)
	must(t, err)
	t.Cleanup(func() { run.Close() })
	w, err = run.Begin(plan.Cells[0].ID, 0, false, epoch)
	must(t, err)
	return dir, run, w
}

// siaPoll is one of a siad with two files; in the third minute /renter/files
// answers with a page, in the fourth the wallet tells nonsense.
func siaPoll(i int) record.Poll {
	at := time.Duration(i) * time.Minute
	p := record.Poll{Seq: int64(i), Intended: at, Start: at, End: at + 700*time.Millisecond}
	end := at
	call := func(name string, took time.Duration, reason string) {
		p.Calls = append(p.Calls, record.PollCall{Name: name, Start: end, End: end + took, Error: reason})
		end += took
	}
	number := func(name string, v float64) { p.Readings = append(p.Readings, record.Reading{Name: name, Value: v}) }
	money := func(name, coins string) {
		var v float64
		fmt.Sscan(coins, &v)
		exact := coins + strings.Repeat("0", 24)
		if v == 0 {
			exact = "0"
		}
		p.Readings = append(p.Readings, record.Reading{Name: name, Value: v, Exact: exact})
	}
	call("/renter/contracts", 100*time.Millisecond, "")
	number("contracts", 50)
	number("contract_bytes", 123456789012)
	money("spent", "100")
	money("spent:fees", "10")
	money("spent:storage", "5")
	money("spent:upload", "4")
	money("spent:download", "0")
	money("spent:accounts", "1")
	money("unspent", "80")
	if i == 2 {
		call("/renter/files", 200*time.Millisecond, "HTML instead of JSON: siad: GET /renter/files")
	} else {
		call("/renter/files", 250*time.Millisecond, "")
		number("files", 2)
		number("uploads", 1)
		number("file_bytes", 1048576.4)
		number("absolute_bytes", 9.8e12)
	}
	call("/wallet", 50*time.Millisecond, "")
	if i == 3 {
		p.Readings = append(p.Readings, record.Reading{Name: "balance", Bad: "negative: -5"})
	} else {
		money("balance", "123456")
	}
	money("outgoing", "0")
	money("incoming", "7")
	call("/consensus", 300*time.Millisecond, "")
	number("height", 170000)
	number("temperature", 21)
	return p
}

// TestSiaMetrics: the columns, their order and conventions are those of the
// collector that the load-test reports were made with.
func TestSiaMetrics(t *testing.T) {
	dir, run, w := pollRun(t, "siad", time.Date(2018, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600)))
	for i := range 4 {
		must(t, w.Poll(siaPoll(i)))
	}
	must(t, run.Flush())
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	var b bytes.Buffer
	must(t, WriteSiaMetrics(r, &b))
	golden := filepath.Join("testdata", "sia-metrics.csv")
	if *update {
		must(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if b.String() != string(want) {
		t.Errorf("got\n%s, want\n%s", b.String(), want)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	must(t, err)
	if got := strings.Join(rows[0], " "); got != "timestamp contract_count file_count uploads_in_progress_count total_contract_size total_file_bytes uploaded_bytes total_contract_spending contract_fee_spending storage_spending upload_spending download_spending remaining_renter_funds wallet_siacoin_balance wallet_outgoing_siacoins wallet_incoming_siacoins api_latency" {
		t.Errorf("columns: %s", got)
	}
	if first := rows[1]; first[0] != "2018-03-01T11:00:00.400000" || first[16] != "400.000" || first[5] != "1048576" || first[13] != "123456"+strings.Repeat("0", 24) {
		t.Errorf("%v", first)
	}
	if gap := rows[3]; gap[2] != "" || gap[6] != "" || gap[1] != "50" || gap[16] != "350.000" {
		t.Errorf("%v", gap)
	}
	if absurd := rows[4]; absurd[13] != "" || absurd[14] == "" {
		t.Errorf("%v", absurd)
	}
}

// TestSiaMetricsOfOthers: there is no such file of another system, or of a run
// without polls.
func TestSiaMetricsOfOthers(t *testing.T) {
	dir, run, w := pollRun(t, "kubo", time.Now())
	must(t, w.Poll(siaPoll(0)))
	must(t, run.Flush())
	for _, dir := range []string{dir, shared(t)} {
		r, err := record.Open(dir)
		must(t, err)
		var b bytes.Buffer
		if err := WriteSiaMetrics(r, &b); err == nil || !strings.Contains(err.Error(), "no siad was polled") || b.Len() > 0 {
			t.Errorf("%v, %d bytes", err, b.Len())
		}
		r.Close()
	}
}

// TestPollsForPrometheus: the latest poll's readings, sums of all, and a gap
// where a call failed.
func TestPollsForPrometheus(t *testing.T) {
	dir, run, w := pollRun(t, "siad", time.Now().Add(-2*time.Minute))
	h := Live(dir)
	metrics := func() string { t.Helper(); return get(t, h, "/metrics", "localhost").Body.String() }
	want := func(lines ...string) {
		t.Helper()
		body := metrics()
		for _, line := range lines {
			absent := strings.HasPrefix(line, "!")
			if line = strings.TrimPrefix(line, "!"); strings.Contains(body, "\n"+line) == absent {
				t.Errorf("%s (absent: %v) in\n%s", line, absent, body)
			}
		}
	}
	want(`!plimsoll_files{`, `!plimsoll_collect_polls_total`)
	must(t, w.Poll(siaPoll(0)))
	must(t, w.Poll(siaPoll(1)))
	must(t, run.Flush())
	want(`plimsoll_files{system="ours"} 2`, `plimsoll_wallet_balance_coins{system="ours"} 123456`, `plimsoll_spent_coins{purpose="fees",system="ours"} 10`,
		`plimsoll_spent_coins{purpose="accounts",system="ours"} 1`, `plimsoll_absolute_bytes{system="ours"} 9.8e+12`, `plimsoll_reading{name="temperature",system="ours"} 21`,
		`plimsoll_collect_polls_total{system="ours"} 2`, `plimsoll_collect_calls_total{call="/renter/files",system="ours"} 2`, `!plimsoll_collect_call_errors_total`,
		`plimsoll_collect_call_duration_seconds{call="/renter/files",system="ours"} 0.25`, "# HELP plimsoll_files Files that the client knows", "# TYPE plimsoll_collect_polls_total counter")
	// The third poll's files are a gap; the next poll was missed.
	p := siaPoll(2)
	p.Seq, p.Missed = 3, 1
	must(t, w.Poll(p))
	must(t, run.Flush())
	want(`!plimsoll_files{`, `!plimsoll_absolute_bytes{`, `plimsoll_contracts{system="ours"} 50`, `plimsoll_collect_polls_total{system="ours"} 3`, `plimsoll_collect_missed_polls_total{system="ours"} 1`,
		`plimsoll_collect_call_errors_total{call="/renter/files",reason="HTML instead of JSON",system="ours"} 1`)
	p = siaPoll(3)
	p.Seq = 4
	must(t, w.Poll(p))
	must(t, run.Flush())
	want(`plimsoll_files{system="ours"} 2`, `!plimsoll_wallet_balance_coins{`, `plimsoll_collect_bad_readings_total{reading="balance",system="ours"} 1`, `plimsoll_collect_polls_total{system="ours"} 4`)
}

// TestStalePolls: a trial whose process died is not told as if it lived.
func TestStalePolls(t *testing.T) {
	dir, run, w := pollRun(t, "siad", time.Now().Add(-time.Hour))
	must(t, w.Poll(siaPoll(0)))
	must(t, w.Poll(siaPoll(1)))
	must(t, run.Flush())
	body := get(t, Live(dir), "/metrics", "localhost").Body.String()
	if strings.Contains(body, "\nplimsoll_files{") || !strings.Contains(body, `plimsoll_collect_polls_total{system="ours"} 2`) {
		t.Errorf("%s", body)
	}
}

// TestDashboard: it is valid JSON, what is shipped is what is written, and each
// metric in it exists; each gauge is shown somewhere.
func TestDashboard(t *testing.T) {
	var b bytes.Buffer
	must(t, WriteDashboard(&b))
	shipped := filepath.Join("..", "docs", "grafana", "plimsoll.json")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(shipped), 0o755))
		must(t, os.WriteFile(shipped, b.Bytes(), 0o644))
	}
	got, err := os.ReadFile(shipped)
	must(t, err)
	if !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is not what is written: go test ./report -run Dashboard -update", shipped)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat, RefID string }
		}
	}
	must(t, json.Unmarshal(b.Bytes(), &board))
	known := map[string]*pollMetric{}
	for _, m := range pollMetrics() {
		known[m.name] = &m
	}
	shown, titles := map[string]bool{}, map[string]bool{}
	for _, p := range board.Panels {
		if titles[p.Title] || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %+v", p)
		}
		titles[p.Title] = true
		for _, target := range p.Targets {
			names := regexp.MustCompile(`plimsoll_\w+`).FindAllString(target.Expr, -1)
			for _, name := range names {
				if known[name] == nil {
					t.Errorf("panel %s shows %s, which does not exist", p.Title, name)
				}
				shown[name] = true
			}
			if len(names) == 0 || strings.Count(target.Expr, selector) != len(names) || strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") {
				t.Errorf("panel %s: %s", p.Title, target.Expr)
			}
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(known[names[0]].labels, label[1]) {
					t.Errorf("panel %s: %s has no label %s", p.Title, names[0], label[1])
				}
			}
		}
	}
	for name := range known {
		if !shown[name] {
			t.Errorf("%s is in no panel", name)
		}
	}
}

// TestMetricNames holds names to Prometheus' conventions.
func TestMetricNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range pollMetrics() {
		if !regexp.MustCompile(`^plimsoll_[a-z]+(_[a-z]+)*$`).MatchString(m.name) || seen[m.name] || !strings.HasSuffix(m.help, ".") {
			t.Errorf("%+v", m)
		}
		seen[m.name] = true
	}
	for _, g := range gauges() {
		if strings.HasSuffix(g.metric, "_total") {
			t.Errorf("%s is no counter", g.metric)
		}
	}
}

// TestMetricsAreDocumented: the table of docs/collect.md is made of the names
// and their help.
func TestMetricsAreDocumented(t *testing.T) {
	const begin, end = "<!-- metrics -->\n", "<!-- /metrics -->"
	page := filepath.Join("..", "docs", "collect.md")
	text, err := os.ReadFile(page)
	must(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the metrics", page)
	}
	want := before + begin + metricsTable() + end + after
	if *update {
		must(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	if want != string(text) {
		t.Errorf("%s does not tell the metrics as they are: go test ./report -run Documented -update", page)
	}
}

// metricsTable is a table of all metrics of polls.
func metricsTable() string {
	var lines []string
	for _, m := range pollMetrics() {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |\n", m.name, labels, m.help))
	}
	slices.Sort(lines)
	return "| metric | labels beside `system` | meaning |\n|---|---|---|\n" + strings.Join(lines, "")
}
