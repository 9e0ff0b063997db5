package disseminate

import (
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
)

// In tests, what goes wrong is written in the words of records.

func faultsOf(text string) experiment.Faults { return scenariotest.Faults(text) }

func joinOf(text string) (j experiment.Join) {
	var every string
	if n, _ := fmt.Sscanf(text, "poisson %g/s", &j.Poisson); n == 1 {
		return j
	}
	if _, err := fmt.Sscanf(text, "waves of %d every %s", &j.Wave, &every); err != nil {
		panic(text)
	}
	d, err := time.ParseDuration(every)
	if err != nil {
		panic(err)
	}
	j.Every = experiment.Duration(d)
	return j
}

func withFaults(text string) func(*experiment.Disseminate) {
	return func(d *experiment.Disseminate) { d.Faults = faultsOf(text) }
}
