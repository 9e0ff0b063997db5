package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/record"
)

// busyReasons are the reasons of invalid trials that a quieter machine takes away.
var busyReasons = []string{record.ReasonBoxBusy, record.ReasonGeneratorLate, record.ReasonGeneratorSaturated, record.ReasonEmulatorLate, record.ReasonMachineLimited}

// busyShare is from which share of invalid trials on a run says what to do about a
// busy machine: fewer cost precision, and not the answer.
const busyShare = 1.0 / 3

// busy counts measured trials, and those that the machine spoilt.
type busy struct {
	of, spoilt int
	reasons    []string
}

func (b *busy) count(t record.Trial) {
	if t.Warmup || t.State != record.Done {
		return
	}
	b.of++
	spoilt := false
	for _, why := range t.Invalid {
		if !slices.Contains(busyReasons, why) {
			continue
		}
		spoilt = true
		if !slices.Contains(b.reasons, why) {
			b.reasons = append(b.reasons, why)
		}
	}
	if spoilt {
		b.spoilt++
	}
}

// hint is what to do; empty: the machine was quiet enough.
func (b *busy) hint(dir string) string {
	if b.of == 0 || float64(b.spoilt) < busyShare*float64(b.of) {
		return ""
	}
	what := "when nothing else uses the CPUs (plimsoll doctor looks), execute them again: " + suggest.Command("plimsoll", "resume", "--retry-invalid", dir)
	switch {
	case slices.Equal(b.reasons, []string{record.ReasonBoxBusy}):
		what += "; or count them, as numbers of the machine as it is: " + suggest.Command("plimsoll", "report", "--set", "limits.others=none", dir)
	case !slices.Contains(b.reasons, record.ReasonBoxBusy):
		what += "; or ask for less: a slower link.rate, lower concurrency"
	}
	return fmt.Sprintf("the machine was too busy for %d of %s (%s): %s", b.spoilt, trials(b.of), strings.Join(b.reasons, ", "), what)
}
