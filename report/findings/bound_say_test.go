package findings

import (
	"fmt"
	"strings"
	"testing"
)

// Each limit speaks by a rule of its own, of a cell that is at it and not of one that
// is far from it.
func TestEachLimitHasARule(t *testing.T) {
	all := func(v float64) []float64 { return []float64{v, v * 1.01, v * 0.99, v, v * 1.01, v * 0.99} }
	for rule, c := range map[string]struct{ at, far Shares }{
		"link-bound":    {Shares{Line: all(0.95)}, Shares{Line: all(0.78)}},
		"one-link-full": {Shares{Line: all(0.4), Link: all(0.95)}, Shares{Line: all(0.4), Link: all(0.5)}},
		"rtt-bound":     {Shares{RoundTrips: all(0.8)}, Shares{RoundTrips: all(0.2)}},
		"cpu-bound":     {Shares{Busiest: all(1)}, Shares{Busiest: all(0.4)}},
		"machine-busy":  {Shares{Machine: all(0.95)}, Shares{Machine: all(0.5)}},
		"compute-bound": {Shares{Work: all(0.95)}, Shares{Work: all(0.5)}},
		"disk-bound":    {Shares{Storage: all(0.8)}, Shares{Storage: all(0.2)}},
		"waiting":       {Shares{Line: all(0.4), Busiest: all(0.2)}, Shares{Line: all(0.4), Busiest: all(1)}},
	} {
		says := func(s Shares) bool {
			for _, f := range SayBounds(Bound([]Shares{s})) {
				if f.Rule == rule {
					return true
				}
			}
			return false
		}
		if !says(c.at) || says(c.far) {
			t.Errorf("%s: at its limit %v, far from it %v", rule, says(c.at), says(c.far))
		}
	}
}

// A machine is full at 100 %, however measured.
func TestAMachineIsNotFullerThanFull(t *testing.T) {
	over := []float64{1.01, 1.02, 1.03, 1.02, 1.01, 1.03}
	said := fmt.Sprint(SayBounds(Bound([]Shares{{Machine: over}})))
	if !strings.Contains(said, "100 % of the machine's CPU in use") || strings.Contains(said, "102") {
		t.Error(said)
	}
}
