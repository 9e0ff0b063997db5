package report

import (
	"testing"
)

func TestX(t *testing.T) {
	r := swarmTruth{}.build(t)
	t.Log(text(t, r, 100))
	for _, f := range r.Findings {
		t.Log(f.Rule, f.Title, f.Evidence)
	}
}
