package report

import (
	"slices"
	"testing"
	"time"
)

// Runs that began within one minute are told apart by their directories.
func TestRunsOfOneMinuteAreToldApart(t *testing.T) {
	at := time.Date(2026, 11, 22, 7, 32, 1, 0, time.UTC)
	trend := RunsTrend{Runs: []TrendPoint{{ID: "a/before", Started: at}, {ID: "a/after", Started: at.Add(20 * time.Second)}}}
	if got := trend.labels(); !slices.Equal(got, []string{"before", "after"}) {
		t.Error(got)
	}
}
