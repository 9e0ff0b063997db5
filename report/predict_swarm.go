package report

import "github.com/plimsoll-project/plimsoll/experiment"

// swarmPredictor predicts the times of the median and of the last leecher, as
// ratios to the fluid bound where each cell has that.
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
	fluid := func(c experiment.Cell) float64 {
		if c.Disseminate == nil || c.Disseminate.Leechers() < 1 || c.Disseminate.Seeders < 1 {
			return 0
		}
		return c.LoadLine(func(wire float64) float64 { return wire })
	}
	line := func(t *Trial) float64 { return t.Metrics["line"] }
	var all []predictive
	for _, s := range r.Systems {
		all = append(all, r.levelModel(e, s.Name, "time_median", "median leecher").over(line, fluid),
			r.levelModel(e, s.Name, "time_last", "last leecher").over(line, fluid))
	}
	return all
}
