package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// unlined are the figures without a load line, each with the reason: all others have
// to have one.
var unlined = map[string]string{
	"throughput-ratio":            "a ratio: the line cancels in it",
	"duration_p50-ratio":          "a ratio",
	"time_median-ratio":           "a ratio",
	"time_last-ratio":             "a ratio",
	"effects":                     "ratios",
	"study":                       "ratios",
	"success":                     "a share of operations",
	"outcomes":                    "counts of operations",
	"server-cpu":                  "CPU: what a link can do says nothing of it",
	"generator-cpu":               "CPU",
	"system-cpu":                  "CPU",
	"harness-cpu":                 "CPU",
	"cpu":                         "CPU",
	"server-memory":               "memory",
	"node-memory":                 "memory",
	"memory-size":                 "memory",
	"used":                        "CPU, memory and bytes",
	"traffic":                     "bytes",
	"expansion":                   "bytes; the dashed line is the code's own n/k",
	"uploaded":                    "bytes; their rate has its line in the figures of bandwidth",
	"funds":                       "money",
	"spending":                    "money",
	"rounds":                      "a number of round trips",
	"residuals":                   "what a model leaves over",
	"peers":                       "shares of blocks",
	"shape-useful":                "shares of peers",
	"phases":                      "parts of an operation, which has its line in the figure of times against sizes",
	"objects-time":                "the bytes on the link of fill are not counted, so that it is not known what crossed it",
	"interactions":                "means over configurations with lines of their own, which the figure of times shows",
	"height-blocks":               "blocks, of different sizes; the bytes have their line in the next figure",
	"collect: efficiency":         "the sizes of what others store are not known, nor what padding they need",
	"collect: file-bandwidth":     "what others store, over links that are not ours",
	"collect: absolute-bandwidth": "likewise",
	"api-latency":                 "calls of the API move no object, and are answered beside the link",
	"latency-bandwidth":           "latency of such calls; the bandwidth has a figure of its own",
}

// lineTips says whether a picture has a mark that is called a load line.
func lineTips(t *testing.T, f *Figure) bool {
	t.Helper()
	for _, p := range f.Panels {
		b, err := json.Marshal(p.Spec)
		must(t, err)
		if strings.Contains(string(b), `"tip":"load line`) || strings.Contains(string(b), `, load line"`) || strings.Contains(string(b), `"the links need `) {
			return true
		}
	}
	return false
}

var (
	linedOnce sync.Once
	linedOf   map[string]*Report
)

// linedRuns are synthetic runs of all scenarios, over links that limit them; tests
// must not change them.
func linedRuns(t *testing.T) map[string]*Report {
	t.Helper()
	linedOnce.Do(func() { linedOf = makeLined(t) })
	return linedOf
}

// linedCost gives a trial of an operation that crosses its link the load line that the
// scenario would.
func linedCost(c experiment.Cell, trial *record.Trial) {
	rate := 95e6 / 8
	size, op := float64(c.Data.Size), c.Overhead.Operation
	if wire := trial.Metrics["wire_bytes"]; op == "fill" || wire < size+200 {
		return
	}
	rtt := 2 * c.Link.Delay.Seconds()
	if x := trial.Metrics["expansion"]; x > 1 && trial.Metrics["wire_bytes"] >= x*size {
		size *= x
	}
	if line := rtt + size/rate; line > 0 {
		trial.Metrics["line"], trial.Metrics["line_share"] = line, line/trial.Metrics["duration_p50"]
	}
	if first := trial.Metrics["first_byte_p50"]; first > 0 && rtt > 0 {
		trial.Metrics["first_byte_line"], trial.Metrics["first_byte_line_share"] = rtt, rtt/first
	}
}

func makeLined(t *testing.T) map[string]*Report {
	rate := 12e6
	load := plainLoad(3)
	load.link = map[string]float64{"bandwidth_line": rate, "wait_line": 0.02}
	polls := plainLoad(4)
	polls.collect = true
	return map[string]*Report{
		"retrieve":    sharedReport(t),
		"overhead":    costs{trial: linedCost}.built(t),
		"upload":      load.report(t),
		"collect":     polls.report(t),
		"disseminate": buildDir(t, swarmTruth{file: strings.Replace(swarmFile, "seeders: 1", "seeders: 1, slow: 25%, slow_down: 20Mbit", 1), leechers: slowAreLast}.write(t)),
		"sync": syncTruth{file: strings.Replace(syncFile, "timeouts:", "sync_interval: [1s, 2s, 5s, 10s]\n    timeouts:", 1), metrics: func(c *experiment.Cell, m map[string]float64) {
			m["wire_line"] = float64(c.Link.Rate) / 8 * 1500 / 1514
		}}.build(t),
	}
}

// The speed of the median leecher is held against the line of half of the leechers, and
// not against that of all, for whom the slow ones are waited for.
func TestMedianAndLastLeecherHaveTheirOwnLines(t *testing.T) {
	r := linedRuns(t)["disseminate"]
	c := r.cells()[0]
	last, half, speed := float64(c.Metrics["line"].Median), float64(c.Metrics["line_median"].Median), float64(c.Metrics["speed_line"].Median)
	if !(half < last/2) || math.Abs(speed*half/c.size()-1) > 1e-9 {
		t.Fatalf("lines of %v s and %v s, of the speed %v B/s", last, half, speed)
	}
	b, err := json.Marshal(r.speedFigure().Panels)
	must(t, err)
	if drawn := string(b); !strings.Contains(drawn, "load line: "+show(speed, "B/s")) || strings.Contains(drawn, show(c.size()/last, "B/s")) {
		t.Errorf("no line at %s: %s", show(speed, "B/s"), drawn)
	}
	if !strings.Contains(r.LoadLine, show(half, "s")) || !strings.Contains(r.LoadLine, show(last, "s")) {
		t.Errorf("no %s and %s in: %s", show(half, "s"), show(last, "s"), r.LoadLine)
	}
}

// Every figure of a time or a rate shows what the link allows, or is named here
// with the reason why not; one without either was forgotten.
func TestEveryTimeAndRateHasALoadLine(t *testing.T) {
	used := map[string]bool{}
	for name, r := range linedRuns(t) {
		figures := slices.Clone(r.Figures)
		if r.Hero != nil {
			figures = append(figures, *r.Hero)
		}
		if len(figures) < 3 && name != "collect" {
			t.Errorf("%s: only %d figures", name, len(figures))
		}
		for i := range figures {
			f := &figures[i]
			id := f.ID
			if id == "hero" {
				id = map[string]string{"retrieve": "throughput", "overhead": "rounds", "upload": "api-latency", "collect": "api-latency", "disseminate": "speed", "sync": "times"}[name]
			}
			lined := lineTips(t, f)
			if strings.Contains(f.Reads, "The load line is far above the picture (") {
				lined = true
			}
			if name == "collect" && unlined["collect: "+id] != "" {
				id = "collect: " + id
			}
			why, exempt := unlined[id]
			used[id] = used[id] || exempt
			switch {
			case lined && exempt:
				t.Errorf("%s: figure %s has a load line, and a reason why not: %s", name, f.ID, why)
			case !lined && !exempt:
				t.Errorf("%s: figure %s (%s) has neither a load line nor a reason why not", name, f.ID, f.Title)
			}
			named := slices.ContainsFunc(f.Legend, func(l Legend) bool { return strings.Contains(l.Label, "load line") && l.Mark == "dash" })
			if lined && !named && f.ID != "line" && lineTips(t, f) {
				t.Errorf("%s: the legend of figure %s does not name its load line", name, f.ID)
			}
		}
		if r.LoadLine == "" {
			t.Errorf("%s: no paragraph on the load line", name)
		}
	}
	for id := range unlined {
		if !used[id] {
			t.Errorf("no run has a figure %s: take its reason out", id)
		}
	}
}

// The paragraph has the run's own numbers, and says so where there is no line.
func TestTheLoadLineInWords(t *testing.T) {
	runs := linedRuns(t)
	for name, want := range map[string][]string{
		"retrieve":    {"between", "MB/s", "The closest approach is", "this line lies at 40.0 ms", "has the link for itself"},
		"overhead":    {"a round trip", "expansion", "depending on the cell", "The closest approach is"},
		"upload":      {"of it over the whole test", "efficiency"},
		"collect":     {"Nothing is moved"},
		"disseminate": {"the fluid bound", "The closest approach of a last leecher"},
		"sync":        {"the replay took 2.00 s"},
	} {
		for _, w := range want {
			if !strings.Contains(runs[name].LoadLine, w) {
				t.Errorf("%s: %q is not in: %s", name, w, runs[name].LoadLine)
			}
		}
	}
	for name, r := range map[string]*Report{
		"attached":     plainLoad(3).report(t),
		"not measured": costs{noLink: true}.built(t),
	} {
		if !strings.Contains(r.LoadLine, "No link was measured") {
			t.Errorf("%s: %s", name, r.LoadLine)
		}
		for i := range r.Figures {
			if f := &r.Figures[i]; f.ID != "efficiency" && lineTips(t, f) {
				t.Errorf("%s: figure %s has a load line", name, f.ID)
			}
		}
	}
}

// The cells' tables have the share beside each time and rate.
func TestSharesOfTheLoadLine(t *testing.T) {
	for name, r := range linedRuns(t) {
		var heads []string
		for _, c := range r.cellTable().Head {
			heads = append(heads, c.Name)
		}
		all := strings.Join(heads, " | ")
		want := map[string]int{"retrieve": 3, "overhead": 2, "disseminate": 2, "sync": 1}[name]
		if n := strings.Count(all, "load line") + strings.Count(all, "of the line"); n < want {
			t.Errorf("%s: %d columns speak of the load line: %s", name, n, all)
		}
		if name == "upload" {
			var rows []string
			for _, s := range r.loadSections() {
				for _, row := range s.Table.Rows {
					rows = append(rows, fmt.Sprint(row))
				}
			}
			if text := strings.Join(rows, "\n"); !strings.Contains(text, "load line of file bandwidth") || !strings.Contains(text, "% of it") {
				t.Errorf("upload: %s", text)
			}
		}
	}
}

// A trial beyond its line is named, and one within the link's tolerance is not.
func TestBeyondTheLine(t *testing.T) {
	of := func(share float64) bool {
		return costs{trial: func(c experiment.Cell, trial *record.Trial) {
			if c.System == "sftp" && c.Overhead.Operation == "get" {
				trial.Metrics["line_share"] = share
			}
		}}.built(t).finding("beyond-line")
	}
	if of(1.05) {
		t.Error("named within the tolerance")
	}
	if !of(1.2) {
		t.Error("not named at 120 % of the line")
	}
}

// slowAreLast lets the leechers with fast links be done at the line of half of them.
func slowAreLast(c *experiment.Cell, _ int, line float64, all []leech) {
	half := c.LoadLineOf(scenario.MedianLeecher(len(all)), func(wire float64) float64 { return 0.949 * wire })
	for i := range all {
		if i >= experiment.SlowLeechers(len(all), c.Disseminate.Slow) {
			all[i].took *= half / line
		}
	}
}
