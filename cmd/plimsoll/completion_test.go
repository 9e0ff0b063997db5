package main

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
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
	for _, format := range []string{"text", "markdown", "json", "page"} {
		if !slices.Contains(offered, format) {
			t.Errorf("%s is not offered", format)
		}
	}
	for _, format := range offered {
		if _, err := p.comparisonWriter(&report.RunComparison{}, format); err != nil {
			t.Errorf("%s is offered: %v", format, err)
		}
	}
}
