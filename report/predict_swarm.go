package report

import (
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// swarmPredictor predicts the times of the median and of the last leecher, each
// as a ratio to its own fluid bound where each cell has that.
type swarmPredictor struct{}

func (swarmPredictor) whole(r *Report, e *experiment.Experiment, asked []Factor) ([]Factor, error) {
	return asked, allSaid(r, e, asked)
}

// allSaid is an error where a factor that varies is not asked for.
func allSaid(r *Report, e *experiment.Experiment, asked []Factor) error {
	for _, f := range r.syncFactors() {
		if err := mustSay(e, asked, f.Path); err != nil {
			return err
		}
	}
	return nil
}

func (swarmPredictor) models(r *Report, _ *input, e *experiment.Experiment) []predictive {
	fluid := func(of func(leechers int) int) func(c experiment.Cell) float64 {
		return func(c experiment.Cell) float64 {
			if c.Disseminate == nil || c.Disseminate.Leechers() < 1 || c.Disseminate.Seeders < 1 {
				return 0
			}
			return c.LoadLineOf(of(c.Disseminate.Leechers()), func(wire float64) float64 { return wire })
		}
	}
	line := func(key string) func(t *Trial) float64 {
		return func(t *Trial) float64 { return t.Metrics[key] }
	}
	everyone := func(leechers int) int { return leechers }
	var all []predictive
	for _, s := range r.Systems {
		all = append(all, r.levelModel(e, s.Name, "time_median", "median leecher").over(line("line_median"), fluid(scenario.MedianLeecher)),
			r.levelModel(e, s.Name, "time_last", "last leecher").over(line("line"), fluid(everyone)))
	}
	return all
}
