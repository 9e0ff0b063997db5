package findings

import (
	"fmt"
	"strings"
	"testing"
)

// A machine is full at 100 %, however measured.
func TestAMachineIsNotFullerThanFull(t *testing.T) {
	over := []float64{1.01, 1.02, 1.03, 1.02, 1.01, 1.03}
	said := fmt.Sprint(SayBounds(Bound([]Shares{{Machine: over}})))
	if !strings.Contains(said, "100 % of the machine's CPU in use") || strings.Contains(said, "102") {
		t.Error(said)
	}
}

// What a finding tells of a cell is what the tables tell: the median over its trials,
// and nothing that no trial had.
func TestAFindingHasTheNumbersOfTheTable(t *testing.T) {
	said := fmt.Sprint(SayBounds(Bound([]Shares{{Line: []float64{0.5, 0.5, 0.5, 0.5}, Machine: []float64{0.91, 0.99, 0.995, 0.997}}})))
	if !strings.Contains(said, "99.2 % (91…100 %) of the machine's CPU in use") {
		t.Error(said)
	}
}
