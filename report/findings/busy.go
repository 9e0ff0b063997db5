package findings

import (
	"fmt"
	"math"
	"strings"
)

// Limits from which on it matters who had the machine's CPUs.
const (
	// A machine that is busy this share of the time has nothing left.
	BusyMachine = 0.90
	// What measures may use this share of it.
	busyHarness = 0.05
	// From this share on the links' emulator leaves too little for the nodes.
	busyEmulator = 0.50
)

// CPUs is who had the machine's CPUs in a cell: medians over trials, as shares of
// all of them. NaN: not known.
type CPUs struct {
	Where                              string
	Machine, Others, Harness, Emulator float64
	More                               string // what else is worth a word where the machine was the limit
}

// Busy says where the machine was the limit, and where it was not and still what
// measures used much of it. A cell is named once, with all who had the CPUs.
func Busy(cells []CPUs) []Finding {
	machine := Finding{Rule: "machine-busy", Tone: Warn, Title: "The machine was the limit",
		Text: fmt.Sprintf("All CPUs together were busy more than %.0f %% of the time in these cells: nodes, the links' emulator and plimsoll waited for each other and for whatever else ran. Times say more about this machine than about the systems.", 100*BusyMachine)}
	harness := Finding{Rule: "harness-busy", Tone: Warn, Title: "The harness used much of the machine",
		Text: fmt.Sprintf("Plimsoll itself used more than %.0f %% of the CPUs in these cells, or the emulator of their links more than %.0f %%: what they took, the nodes did not have.", 100*busyHarness, 100*busyEmulator)}
	for _, c := range cells {
		var by, much []string
		for _, who := range []struct {
			name        string
			share, most float64
		}{{"plimsoll", c.Harness, busyHarness}, {"the emulator", c.Emulator, busyEmulator}} {
			if who.share > who.most {
				much = append(much, fmt.Sprintf("%s %.0f %%", who.name, 100*who.share))
			}
		}
		if !(c.Machine > BusyMachine) {
			if much != nil {
				harness.Evidence = append(harness.Evidence, c.Where+": "+strings.Join(much, " and ")+" of the machine")
			}
			continue
		}
		words := fmt.Sprintf("%s: %.0f %% of the machine in use", c.Where, 100*c.Machine)
		if by = much; !math.IsNaN(c.Others) {
			by = append(by, fmt.Sprintf("others %.0f %%", 100*c.Others))
		}
		if by != nil {
			words += ", by " + strings.Join(by, ", ")
		}
		if c.More != "" {
			words += "; " + c.More
		}
		machine.Evidence = append(machine.Evidence, words)
	}
	return told(machine, harness)
}

// told are the findings that have evidence.
func told(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if f.Evidence != nil {
			out = append(out, f)
		}
	}
	return out
}
