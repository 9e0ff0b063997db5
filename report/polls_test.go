package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// TestPollsForPrometheus: the latest poll's readings, sums of all, and a gap
// where a call failed.
func TestPollsForPrometheus(t *testing.T) {
	dir, run, w := synthetic.Polled(t, "siad", time.Now().Add(-2*time.Minute))
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
	must(t, w.Poll(synthetic.SiaPoll(0)))
	must(t, w.Poll(synthetic.SiaPoll(1)))
	must(t, run.Flush())
	want(`plimsoll_files{system="ours"} 2`, `plimsoll_wallet_balance_coins{system="ours"} 123456`, `plimsoll_spent_coins{purpose="fees",system="ours"} 10`,
		`plimsoll_spent_coins{purpose="accounts",system="ours"} 1`, `plimsoll_absolute_bytes{system="ours"} 9.8e+12`, `plimsoll_reading{name="temperature",system="ours"} 21`,
		`plimsoll_collect_polls_total{system="ours"} 2`, `plimsoll_collect_calls_total{call="/renter/files",system="ours"} 2`, `!plimsoll_collect_call_errors_total`,
		`plimsoll_collect_call_duration_seconds{call="/renter/files",system="ours"} 0.25`, "# HELP plimsoll_files Files that the client knows", "# TYPE plimsoll_collect_polls_total counter")
	// The third poll's files are a gap; the next poll was missed.
	p := synthetic.SiaPoll(2)
	p.Seq, p.Missed = 3, 1
	must(t, w.Poll(p))
	must(t, run.Flush())
	want(`!plimsoll_files{`, `!plimsoll_absolute_bytes{`, `plimsoll_contracts{system="ours"} 50`, `plimsoll_collect_polls_total{system="ours"} 3`, `plimsoll_collect_missed_polls_total{system="ours"} 1`,
		`plimsoll_collect_call_errors_total{call="/renter/files",reason="HTML instead of JSON",system="ours"} 1`)
	p = synthetic.SiaPoll(3)
	p.Seq = 4
	must(t, w.Poll(p))
	must(t, run.Flush())
	want(`plimsoll_files{system="ours"} 2`, `!plimsoll_wallet_balance_coins{`, `plimsoll_collect_bad_readings_total{reading="balance",system="ours"} 1`, `plimsoll_collect_polls_total{system="ours"} 4`)
}

// TestStalePolls: a trial whose process died is not told as if it lived.
func TestStalePolls(t *testing.T) {
	dir, run, w := synthetic.Polled(t, "siad", time.Now().Add(-time.Hour))
	must(t, w.Poll(synthetic.SiaPoll(0)))
	must(t, w.Poll(synthetic.SiaPoll(1)))
	must(t, run.Flush())
	body := get(t, Live(dir), "/metrics", "localhost").Body.String()
	if strings.Contains(body, "\nplimsoll_files{") || !strings.Contains(body, `plimsoll_collect_polls_total{system="ours"} 2`) {
		t.Errorf("%s", body)
	}
}

// TestDashboard: the Grafana dashboard is valid JSON, each metric in it exists, and
// each gauge is shown somewhere.
func TestDashboard(t *testing.T) {
	const selector = `{system="$system"}`
	raw, err := os.ReadFile(filepath.Join("..", "docs", "grafana", "plimsoll.json"))
	must(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat, RefID string }
		}
	}
	must(t, json.Unmarshal(raw, &board))
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
