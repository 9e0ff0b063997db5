package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// A node has its first block before it serves, in every row of the table: both columns are
// medians over the same trials, also where some never came to serve.
func TestSyncTableHasOneStatistic(t *testing.T) {
	r := buildDir(t, syncTruth{node: func(c *experiment.Cell, block int, f *newcomer) {
		if block%2 == 0 { // slow to begin: late, or never there
			f.first, f.serve = 13, 15
			f.chain = 14
		}
		if block == 2 && is(c, "sync.storage", "ram") {
			f.outcome, f.class, f.height = record.Deadline, "deadline", 0.7
		}
	}}.write(t))
	for _, c := range r.Cells {
		first, serve := c.Metrics["first_block"], c.Metrics["sync_time"]
		if !first.Median.Known() || !(first.Median <= serve.Median) || first.N != serve.N {
			t.Errorf("%s: first block %v of %d trials, serving %v of %d and %d more", c.ID, first.Median, first.N,
				serve.Median, serve.N, serve.Censored)
		}
	}
	var b bytes.Buffer
	must(t, page.HTML(&b, r, page.Options{}))
	if !strings.Contains(b.String(), "Medians over valid trials") {
		t.Error("the table does not name its statistic")
	}
}

// Where the default configuration is left out, the report says that nothing is compared
// with it.
func TestSyncWithoutItsDefault(t *testing.T) {
	file := strings.Replace(syncFile, "repetitions:",
		"where: [\"sync.storage == ram || sync.vary.subscriber == none\"]\nrepetitions:", 1)
	r := buildDir(t, syncTruth{file: file}.write(t))
	var b bytes.Buffer
	must(t, page.HTML(&b, r, page.Options{}))
	if text := b.String(); !strings.Contains(text, "the default is not among the cells") ||
		!strings.Contains(text, "is not among the cells, so nothing is compared") {
		t.Errorf("verdict %+v", r.Verdict)
	}
}

// With two repetitions no configuration is significantly faster, and knobs are, of which there
// are more trials: the verdict does not contradict their table.
func TestSyncVerdictNamesEffects(t *testing.T) {
	r := buildDir(t, syncTruth{file: strings.Replace(syncFile, "repetitions: 6", "repetitions: 2", 1),
		node: func(c *experiment.Cell, block int, f *newcomer) {
			if block == 1 && is(c, "sync.storage", "disk") && is(c, "sync.vary.subscriber", "full") {
				f.first, f.chain, f.serve = 0.5*f.first, 0.5*f.chain, 0.5*f.serve
			}
		}}.write(t))
	effects := r.Table("effects")
	named := 0
	for i := range effects.Rows {
		name, main := effects.Get(i, "effect").Text, effects.Get(i, "kind").Text == "main"
		if main && effects.Get(i, "result").Text == "faster" {
			named++
			if !strings.Contains(r.Verdict.Text, name) {
				t.Errorf("%s is faster, verdict %q", name, r.Verdict.Text)
			}
		}
	}
	if named == 0 || !strings.HasPrefix(r.Verdict.Text, "No configuration is significantly faster") {
		t.Errorf("%d effects, verdict %q", named, r.Verdict.Text)
	}
}
