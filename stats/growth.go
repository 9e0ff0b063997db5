package stats

import "errors"

// Growth classes: how y goes with x.
type GrowthClass string

const (
	Constant    GrowthClass = "constant"    // y = a
	Linear      GrowthClass = "linear"      // y = a + b·x
	Exponential GrowthClass = "exponential" // y = a·exp(b·x)
	Saturating  GrowthClass = "saturating"  // y = c − (c−a)·exp(−x/τ): towards a limit, from below or above
	Unclear     GrowthClass = "unclear"     // the data do not tell the best two apart
)

// GrowthFit is the class of growth that the data support.
type GrowthFit struct {
	Class    GrowthClass             `json:"class"`
	Second   GrowthClass             `json:"second"` // next best
	N        int                     `json:"n"`
	NEff     float64                 `json:"n_eff"`   // independent points that the residuals' autocorrelation leaves
	Weights  map[GrowthClass]float64 `json:"weights"` // Akaike weights of the classes, sum 1
	Params   []GrowthParam           `json:"params"`  // of Class (of the simplest of the best two when unclear)
	PerX     Interval                `json:"per_x"`   // relative change of y over the range of x: (y(end) − y(begin)) / y(begin)
	Residual float64                 `json:"residual"`
	Why      string                  `json:"why"` // one sentence
}

// GrowthParam is one parameter of a class: "a", "b", "c", "tau".
type GrowthParam struct {
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	Interval Interval `json:"interval"` // 95 %
}

// Growth chooses the class of growth of y with x (in the order of time).
func Growth(x, y []float64) (GrowthFit, error) {
	return GrowthFit{}, errors.New("stats: growth: not there yet")
}

// At is the fitted y at x.
func (f GrowthFit) At(x float64) float64 { return 0 }

// Change is a moment at which a series changes its level or its slope.
type Change struct {
	Index    int      `json:"index"`    // first point of the new regime
	X        float64  `json:"x"`        //
	Interval Interval `json:"interval"` // of X, 95 %
	Kind     string   `json:"kind"`     // "level" or "slope"
	Before   float64  `json:"before"`   // level just before, or slope before
	After    float64  `json:"after"`
}

// Changes finds where y changes; none when nothing is shown.
func Changes(x, y []float64) []Change { return nil }

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
