package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
)

// What measures may use this share of the machine's CPUs.
const (
	busyHarness = 0.05
	// From this share on the links' emulator leaves too little for the nodes.
	busyEmulator = 0.50
)

// CPUs is what measures used in a cell: medians over trials, as shares of all CPUs
// of the machine. NaN: not known.
type CPUs struct {
	Where             string
	Harness, Emulator float64
}

// Harness says where what measures used much of the machine.
func Harness(cells []CPUs) []Finding {
	f := Finding{Rule: "harness-busy", Tone: Warn, Title: "The harness used much of the machine",
		Text: fmt.Sprintf("Plimsoll itself used more than %s of the CPUs in these cells, or the emulator of their links more than %s: what they took, the nodes did not have.", words.Percent(busyHarness), words.Percent(busyEmulator))}
	for _, c := range cells {
		var parts []string
		if c.Harness > busyHarness {
			parts = append(parts, "plimsoll "+words.PartOf(c.Harness))
		}
		if c.Emulator > busyEmulator {
			parts = append(parts, "the emulator "+words.PartOf(c.Emulator))
		}
		if parts != nil {
			f.Evidence = append(f.Evidence, c.Where+": "+words.List(parts)+" of the machine")
		}
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}
