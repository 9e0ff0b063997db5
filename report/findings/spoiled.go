package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Spoiled is how many trials of one cell are invalid for one reason.
type Spoiled struct {
	Where  string
	Trials int
	Of     int // all of the cell
}

// GeneratorBound names trials of which the load generator was the limit: a result about
// the generator is none about the server. What there is to try differs with the
// scenario.
func GeneratorBound(cells []Spoiled, try string) []Finding {
	return spoiled(cells, Finding{Rule: "generator-bound", Tone: Warn, Title: "The load generator was the limit",
		Text: "in these cells the generator itself was too busy or too late; their invalid trials say how fast the generator is, not the server, and are left out.",
		Try:  try})
}

// LinkOff names trials whose link was not what was asked for; late: its emulator alone
// was, late or at its end.
func LinkOff(cells []Spoiled, late bool) []Finding {
	f := Finding{Rule: "link-off", Tone: Warn, Title: "A link was not what was asked for",
		Text: "the link measured before these trials, or the emulator during them, was off by more than the tolerance; the trials are left out."}
	if late {
		f.Title = "The links' emulator was late or ended"
		f.Text = "the links' emulator forwarded packets too late during these trials, or ended; the trials are left out."
		f.Try = "Use a slower link or fewer connections, or a quieter machine."
	}
	return spoiled(cells, f)
}

// BoxBusy names trials during which others used the machine.
func BoxBusy(cells []Spoiled) []Finding {
	return spoiled(cells, Finding{Rule: "box-busy", Tone: Warn, Title: "Something else was using the machine",
		Text: "other processes took CPU time during these trials; they are left out. Small differences between the others are not to be believed yet."})
}

// MachineLimited names trials that measured the machine and not the systems.
func MachineLimited(cells []Spoiled) []Finding {
	return spoiled(cells, Finding{Rule: "machine-limited", Tone: Warn, Title: "The machine was the limit",
		Text: "the CPUs of this machine, or one thread of the links' emulator, were busy for most of the time of these trials; they are left out.",
		Try:  "Use fewer nodes or connections, a slower link, or a machine with more CPUs. plimsoll report DIR --set limits.machine=none shows the numbers all the same: they are largely the machine's."})
}

// spoiled lists the cells, and begins the finding's text with the number of trials.
func spoiled(cells []Spoiled, f Finding) []Finding {
	total := 0
	for _, c := range cells {
		if c.Trials > 0 {
			total += c.Trials
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of %d", c.Where, words.Plural(int64(c.Trials), "trial", "trials"), c.Of))
		}
	}
	f.Text = words.Plural(int64(total), "trial", "trials") + ": " + f.Text
	return withEvidence(f)
}
