package sync

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
)

// In tests, what goes wrong is written in the words of records.

func faultsOf(text string) experiment.Faults { return scenariotest.Faults(text) }

func rateOf(text string) experiment.BitRate {
	var number float64
	var unit string
	if _, err := fmt.Sscanf(text, "%g%s", &number, &unit); err != nil {
		panic(text)
	}
	return experiment.BitRate(number * map[string]float64{"kbit": 1e3, "Mbit": 1e6}[unit])
}

func speedsOf(text string) (v experiment.Speeds) {
	words := strings.Fields(text)
	for i, word := range words[1:] {
		if _, err := fmt.Sscanf(word, "x%g", &v.Spread); err == nil {
			continue
		}
		if words[0] == "lognormal" {
			v.Lognormal = rateOf(word)
		} else {
			v.List = append(v.List[:i], rateOf(word))
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
			t.Rate = rateOf(strings.TrimPrefix(what, "at "))
		}
		if err := of.UnmarshalText([]byte(count)); err != nil {
			panic(err)
		}
		all = append(all, t)
	}
	return all
}

func withFaults(text string) func(*fakeChains, *experiment.Cell) {
	return func(_ *fakeChains, cell *experiment.Cell) { cell.Sync.Faults = faultsOf(text) }
}
