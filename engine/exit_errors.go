package engine

import "fmt"

// errorBudget ends the run when too large a share of one trial's finished
// operations failed on the server's side.
type errorBudget struct{ share float64 }

func (errorBudget) Name() string { return "max_errors" }

func (c errorBudget) Met(p progressSoFar) (string, bool) {
	if p.TrialFinished == 0 {
		return "", false
	}
	share := float64(p.TrialFailures) / float64(p.TrialFinished)
	if share <= c.share {
		return "", false
	}
	return fmt.Sprintf("%d of %d finished operations of a trial failed through the server (%.2f %%), the budget is %.2f %%",
		p.TrialFailures, p.TrialFinished, 100*share, 100*c.share), true
}
