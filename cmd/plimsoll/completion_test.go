package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// Every format that a comparison can be written in is offered, and only those.
func TestFormatsOfCompareAreCompleted(t *testing.T) {
	p := &program{ui: &ui.UI{}}
	compare, _, err := p.root().Find([]string{"compare"})
	if err != nil {
		t.Fatal(err)
	}
	offer, ok := compare.GetFlagCompletionFunc("format")
	if !ok {
		t.Fatal("nothing is offered")
	}
	offered, _ := offer(compare, nil, "")
	for _, format := range []string{"text", "markdown", "json"} {
		if !slices.Contains(offered, format) {
			t.Errorf("%s is not offered", format)
		}
	}
	for _, format := range offered {
		if _, err := p.comparisonWriter(&analysis.Comparison{}, format); err != nil {
			t.Errorf("%s is offered: %v", format, err)
		}
	}
}

// The system that a rule compares with is one of the run's.
func TestGatesAreCompletedFromTheRun(t *testing.T) {
	dir := emptyRun(t)
	root := (&program{ui: &ui.UI{}}).root()
	offered := func(command, flag, begun string) []string {
		c, _, err := root.Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		offer, ok := c.GetFlagCompletionFunc(flag)
		if !ok {
			t.Fatalf("%s --%s: nothing is offered", command, flag)
		}
		all, _ := offer(c, []string{dir}, begun)
		for i := range all {
			all[i], _, _ = strings.Cut(all[i], "\t")
		}
		return all
	}
	for _, command := range []string{"report", "compare"} {
		want := []string{"throughput within 20% of nginx", "throughput within 20% of static"}
		if rules := offered(command, "gate", "throughput within 20% of "); !slices.Equal(rules, want) {
			t.Errorf("%s --gate: %q", command, rules)
		}
	}
}

// emptyRun is the directory of a run of which no trial was executed.
func emptyRun(t *testing.T) string {
	t.Helper()
	e, err := experiment.Parse("x.yaml", []byte("scenario: retrieve\nsystems: [nginx, static]\nlink: {delay: 5ms}\ndata: {size: 64KiB}\nretrieve: {concurrency: [1, 4, 16], requests: 100}\n"), nil, catalog())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := plan.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	run, err := record.Create(dir, raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
