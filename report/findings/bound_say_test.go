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
