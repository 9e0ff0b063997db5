package stats

import "errors"

// Attribution says which of several quantities explains the growth of y.
type Attribution struct {
	Effects []Effect `json:"effects"`
	By      []string `json:"by"` // names of those that explain it; empty: none, or it cannot be told
	Told    bool     `json:"told"`
	Why     string   `json:"why"` // one sentence, with figures
}

// Effect is what one quantity does to y, the others held.
type Effect struct {
	Name     string   `json:"name"`
	Slope    float64  `json:"slope"` // of y per unit of the quantity
	Interval Interval `json:"interval"`
	Moves    Interval `json:"moves"` // change of y over the quantity's range
	VIF      float64  `json:"vif"`   // variance inflation: how much the others blur it
	P        float64  `json:"p"`     // Holm over the effects
}

// Attribute explains y (in the order of time) by the quantities x[name][i].
func Attribute(y []float64, names []string, x [][]float64) (Attribution, error) {
	return Attribution{}, errors.New("stats: attribute: not there yet")
}
