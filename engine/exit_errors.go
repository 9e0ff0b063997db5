package engine

import (
	"fmt"
	"math"
)

// errorBudget ends the run when too large a share of one trial's finished
// operations failed on the server's side.
type errorBudget struct{ share float64 }

func (errorBudget) Name() string { return "max_errors" }

func (c errorBudget) Met(p progressSoFar) (string, bool) {
	finished, failures := p.TrialFinished, p.TrialFailures
	if p.State != nil {
		finished, failures = p.State.Finished, p.State.Failures
		// While a trial runs its first failures are no share yet.
		if float64(finished) < math.Max(fewAttempts, 1/c.share) {
			return "", false
		}
	}
	if finished == 0 {
		return "", false
	}
	share := float64(failures) / float64(finished)
	if share <= c.share {
		return "", false
	}
	return fmt.Sprintf("%d of %d finished operations of a trial failed through the server (%.2f %%), the budget is %.2f %%",
		failures, finished, 100*share, 100*c.share), true
}

// fewAttempts tell no share of failures.
const fewAttempts = 20
