package page_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// result analyses a committed run.
func result(t testing.TB, name string) *analysis.Result {
	t.Helper()
	return analyse(t, facts.Unpack(t, name))
}

func analyse(t testing.TB, dir string) *analysis.Result {
	t.Helper()
	run, err := record.Open(dir)
	must(t, err)
	t.Cleanup(func() { run.Close() })
	r, err := report.Build(run, false)
	must(t, err)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in\n%.2000s", word, text)
		}
	}
}

func write(t testing.TB, r *analysis.Result) string {
	t.Helper()
	var b bytes.Buffer
	must(t, page.HTML(&b, r, false))
	return b.String()
}

func text(t testing.TB, r *analysis.Result, width int, verbose bool) string {
	t.Helper()
	var b bytes.Buffer
	must(t, page.Text(&b, r, width, verbose))
	return b.String()
}

// views calls a function with the result of every committed run.
func views(t *testing.T, do func(t *testing.T, r *analysis.Result)) {
	for _, name := range facts.Names(t) {
		t.Run(name, func(t *testing.T) { do(t, result(t, name)) })
	}
}

// parsed is what a test looks at in a page.
type parsed struct {
	words   int // in sight: not of figures, not in closed details
	text    string
	figures []figure
	plots   int
}

type figure struct {
	ID, Title, Reads string
	Shared           map[string]any
	Panels           []struct {
		Title string
		Spec  struct {
			Data struct{ Values []map[string]any }
		}
	}
}

func parse(t testing.TB, src string) parsed {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(src))
	must(t, err)
	var p parsed
	var walk func(n *html.Node, sight bool)
	walk = func(n *html.Node, sight bool) {
		class := ""
		for _, a := range n.Attr {
			if a.Key == "class" {
				class = a.Val
			}
			if a.Key == "id" && a.Val == "figures-data" {
				must(t, json.Unmarshal([]byte(n.FirstChild.Data), &p.figures))
			}
		}
		switch {
		case n.Type == html.TextNode && sight:
			p.words += len(strings.Fields(n.Data))
			p.text += n.Data + "\n"
		case n.Data == "script" || n.Data == "style" || n.Data == "head" || n.Data == "option":
			return
		case class == "aside" || class == "skip":
			sight = false
		case class == "plot":
			p.plots++
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, sight && !(n.Data == "details" && c.Data != "summary"))
		}
	}
	walk(doc, true)
	return p
}

// The page of every run asks nothing of any network, has data for every figure, at most
// six in sight beside that of the first screen, and few words.
func TestPage(t *testing.T) {
	loads := regexp.MustCompile(`(?i)(src|href|action|poster|data)\s*=\s*["']?\s*(https?:|//)|` +
		`url\(\s*["']?\s*(https?:|//)|@import`)
	views(t, func(t *testing.T, r *analysis.Result) {
		src := write(t, r)
		script := regexp.MustCompile(`(?s)<script>.*?</script>`) // its policy lets it load nothing
		if at := loads.FindString(script.ReplaceAllString(src, "")); at != "" {
			t.Errorf("the page would load something: %s", at)
		}
		contains(t, html.UnescapeString(src[:2000]), "default-src 'none'", "connect-src 'none'")
		p := parse(t, src)
		for _, f := range p.figures {
			for _, panel := range f.Panels {
				if len(panel.Spec.Data.Values) == 0 {
					t.Errorf("figure %s, panel %q has no data", f.ID, panel.Title)
				}
			}
			if f.Shared["layer"] == nil || strings.Count(f.Reads, ". ") > 1 {
				t.Errorf("figure %s: caption %q, %d parts", f.ID, f.Reads, len(f.Shared))
			}
		}
		if len(p.figures) == 0 || p.plots == 0 {
			t.Error("no figure is drawn")
		}
		if p.words > 800 {
			t.Errorf("%d words in sight, more than 800", p.words)
		}
		contains(t, p.text, r.Verdict.Text)
		t.Logf("%d words, %d figures, %d bytes", p.words, len(p.figures), len(src))
		keep(t, src)
	})
}

// Every figure of the view is drawn for a run that has all that it needs.
func TestFiguresOfRetrieve(t *testing.T) {
	r := result(t, "retrieve")
	p := parse(t, write(t, r))
	same := slices.EqualFunc(p.figures, r.View.Figures, func(f figure, v analysis.Figure) bool { return f.ID == v.ID })
	if !same {
		t.Fatalf("figures %v, want %v", p.figures, r.View.Figures)
	}
	// The marks are the numbers of the analysis: every cell's median and interval.
	var marks []map[string]any
	for _, panel := range p.figures[0].Panels {
		marks = append(marks, panel.Spec.Data.Values...)
	}
	for _, c := range r.Cells {
		s := c.Metrics["throughput"]
		if !slices.ContainsFunc(marks, func(m map[string]any) bool {
			off := func(key string, of analysis.Num) float64 { return math.Abs(m[key].(float64)/float64(of) - 1) }
			return m["k"] == "median" && m["s"] == c.System && off("y", s.Median)+off("lo", s.Lo)+off("hi", s.Hi) < 1e-5
		}) {
			t.Errorf("no mark for %s: %v", c.ID, s)
		}
	}
	// The series adds up to the bytes of the trial, up to the second that is cut off.
	for _, s := range r.Frame.Series {
		sum := 0.0
		for _, x := range s.Points {
			sum += x.Value
		}
		if mean := sum / float64(len(s.Points)); s.Trial.Valid() &&
			math.Abs(mean/s.Trial.Metrics["throughput"]-1) > 0.5 {
			t.Errorf("trial %d: mean of the series %g B/s, throughput %g B/s", s.Trial.ID, mean,
				s.Trial.Metrics["throughput"])
		}
	}
}

// Names that others chose are text, on the page and on the terminal.
func TestHostileNames(t *testing.T) {
	const evil = `</script><script>alert("x")</script><img src=x onerror=alert(1)>` + "\x1b[31m\u009b2J\t'\"`"
	r := result(t, "retrieve")
	r.Title, r.Question, r.Verdict.Text = evil, evil, evil
	r.Notes, r.Environment = []string{evil}, []analysis.Pair{{Key: evil, Value: evil}}
	r.Findings = []analysis.Finding{{Rule: "x", Tone: analysis.Bad, Title: evil, Advice: evil,
		Evidence: []string{evil}}}
	r.Gates = []analysis.Ruling{{Rule: evil, State: "fail",
		Cells: []analysis.CellRuling{{System: evil, Where: evil, State: "fail", Why: evil}}}}
	r.Tables = []analysis.Table{{ID: "own", Title: evil, Caption: evil,
		Head: []analysis.TableColumn{{Name: evil}}, Rows: [][]analysis.Value{{analysis.Text(evil)}}}}
	r.Systems[1].Name = evil
	for _, c := range r.Cells {
		if c.System == "boxo" {
			c.System = evil
		}
	}
	for i := range r.Frame.Layout.Axis.Labels {
		r.Frame.Layout.Axis.Labels[i] = evil
	}
	src := write(t, r)
	if strings.Contains(src, "<script>alert") || strings.Contains(src, "<img") {
		t.Error("a name became markup")
	}
	if got := strings.Count(src, "<script"); got != 2 {
		t.Errorf("%d script elements, want 2", got)
	}
	if p := parse(t, src); len(p.figures) == 0 {
		t.Error("the figures' data cannot be read")
	}
	t.Setenv("NO_COLOR", "1")
	for _, verbose := range []bool{false, true} {
		if s := text(t, r, 80, verbose); strings.ContainsAny(s, "\x1b\u009b") {
			t.Errorf("a name commands the terminal: %q", s)
		}
	}
}

// The page of a run of many cells is small enough to be sent and opened: 4 MB for 500.
func TestPageOfManyCells(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 500 trials")
	}
	const file = `
scenario: retrieve
title: Many cells
question: What does the page of many cells weigh?
systems: [nginx, boxo]
baseline: nginx
link: {rate: [100Mbit, 150Mbit, 200Mbit, 250Mbit, 300Mbit, 400Mbit, 500Mbit, 700Mbit, 800Mbit, 1Gbit],
  delay: [2ms, 10ms, 20ms, 40ms, 60ms]}
data: {size: 64MiB}
retrieve: {concurrency: [1, 4, 8, 16, 64], range: 1MiB, requests: 4}
repetitions: 2
warmup: 0
limits: {deadline: 20s}
`
	dir := synthetic.Write(t, file)
	r := analyse(t, dir)
	src := write(t, r)
	t.Logf("%d bytes", len(src))
	if len(r.Cells) != 500 || len(src) > 4_000_000 {
		t.Errorf("the page of %d cells has %d bytes, want at most 4 MB of 500", len(r.Cells), len(src))
	}
	if n := strings.Count(text(t, r, 80, false), "\n"); n > 22 {
		t.Errorf("its summary has %d lines", n)
	}
	keep(t, src)
}

// keep writes a page where PLIMSOLL_KEEP says, to look at.
func keep(t testing.TB, src string) {
	if dir := os.Getenv("PLIMSOLL_KEEP"); dir != "" {
		must(t, os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".html"), []byte(src), 0o644))
	}
}
