package sync

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
)

// In tests, what goes wrong is written in the words of records.

func faultsOf(text string) experiment.Faults { return scenariotest.Faults(text) }

func speedsOf(text string) (v experiment.Speeds) {
	words := strings.Fields(text)
	for i, word := range words[1:] {
		var rate float64
		if _, err := fmt.Sscanf(word, "x%g", &v.Spread); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(word, "%gMbit", &rate); err != nil {
			panic(text)
		}
		if words[0] == "lognormal" {
			v.Lognormal = experiment.BitRate(1e6 * rate)
		} else {
			v.List = append(v.List[:i], experiment.BitRate(1e6*rate))
		}
	}
	return v
}

func troubleOf(text string) (all experiment.Troubles) {
	for part := range strings.SplitSeq(text, "; ") {
		if part == "none" {
			continue
		}
		var t experiment.Trouble
		count, what, _ := strings.Cut(part, " ")
		of := &t.Slow
		switch what {
		case "silent":
			of = &t.Silent
		case "stranger":
			of = &t.Stranger
		default:
			var rate float64
			if _, err := fmt.Sscanf(what, "at %gkbit", &rate); err != nil {
				panic(text)
			}
			t.Rate = experiment.BitRate(1e3 * rate)
		}
		if err := of.UnmarshalText([]byte(count)); err != nil {
			panic(err)
		}
		all = append(all, t)
	}
	return all
}
