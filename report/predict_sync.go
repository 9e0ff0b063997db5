package report

import "github.com/plimsoll-project/plimsoll/experiment"

// syncPredictor predicts from the factorial model of the scenario sync. What a
// knob is not set to is its default; conditions must be said.
type syncPredictor struct{}

func (syncPredictor) whole(r *Report, e *experiment.Experiment, asked []Factor) ([]Factor, error) {
	for _, f := range r.syncFactors() {
		if asking(asked, f.Path) != nil {
			continue
		}
		if !f.knob() {
			if err := mustSay(e, asked, f.Path); err != nil {
				return nil, err
			}
		}
		asked = append(asked, f.Levels[0])
	}
	return asked, nil
}

func (syncPredictor) models(r *Report, _ *input, e *experiment.Experiment) []predictive {
	var all []predictive
	for _, s := range r.Systems {
		all = append(all, r.levelModel(e, s.Name, "sync_time", "time until it can serve"))
	}
	return all
}
