package stats

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// WaterfallFit says what bought what, from the default to the best combination.
type WaterfallFit struct {
	From, To []int // levels: all 0, and the lowest that was measured
	Total    Interval
	// Steps change one factor after the other. What a step gains depends on those
	// before it where factors act together.
	Steps []WaterfallStep
	// Shapley shares the total among the factors as no order would change: each
	// gets the mean, over all orders, of what it multiplies the value by when its
	// turn comes. They multiply to Total. In the factors' order, those alone that
	// change.
	Shapley  []WaterfallStep
	Warnings []string
}

// WaterfallStep is one factor's part.
type WaterfallStep struct {
	Factor, Level int      // the level it changes to, from 0
	After         []int    // the combination that is reached; nil for a Shapley share
	Ratio         Interval // by which the value is multiplied
	Share         float64  // of the logarithm of Total; negative where it rises. NaN where nothing is gained in total
	FromModel     bool     // rests on a combination without trials, which the model of [Factorial] gives
}

// maxShapley is the number of factors up to which all orders are gone through.
const maxShapley = 12

// Waterfall goes from the default combination to the lowest one, a factor at a
// time: in the order given (indices of factors; those that do not change are
// skipped, those that are not named follow), and else the largest gain next. It
// also shares the total gain by Shapley's value (Shapley 1953) of ln(value):
// exactly, from all combinations of the changes, for up to 12 factors.
//
// Ratios are of geometric means, compared within blocks. Each of them is a sum of
// ln(value) with known weights, Shapley shares included, so its interval is
// Student's like those of [Factorial]; nothing is drawn. As the best combination
// was chosen by the same trials, intervals are at 1−conf divided by the number of
// combinations it was chosen from, so that they cover all the same; the middle of
// Total still promises a little too much where combinations are close to each
// other.
//
// Errors are as of [Factorial]; and an order that names a factor twice, or none.
func Waterfall(factors []FactorialFactor, obs []FactorialObs, order []int, conf float64) (WaterfallFit, error) {
	d, err := newDesign(factors, obs, conf)
	if err != nil {
		return WaterfallFit{}, err
	}
	for i, f := range order {
		if f < 0 || f >= len(factors) {
			return WaterfallFit{}, fmt.Errorf("factorial: the order of steps names factor %d of %d", f, len(factors))
		}
		if slices.Contains(order[:i], f) {
			return WaterfallFit{}, fmt.Errorf("factorial: the order of steps names %s twice", factors[f].Name)
		}
	}
	w := newWaterfall(d, conf)
	fit := WaterfallFit{From: w.from, To: w.to}
	fit.Total = w.ratio(w.weights(0), w.weights(w.all)).Ratio
	at := 0
	left := slices.Clone(w.changes)
	for len(left) > 0 {
		k := w.next(at, left, order)
		then := at | 1<<slices.Index(w.changes, left[k])
		step := w.ratio(w.weights(at), w.weights(then))
		step.Factor, step.Level, step.After = left[k], w.to[left[k]], w.cell(then)
		step.FromModel = w.modelled[at] || w.modelled[then]
		fit.Steps = append(fit.Steps, step)
		at, left = then, slices.Delete(left, k, k+1)
	}
	if len(w.changes) <= maxShapley {
		fit.Shapley = w.shapley()
	} else {
		w.warn(fmt.Sprintf("the gain is not shared among %d factors: 12 at most", len(w.changes)))
	}
	fit.Warnings = w.warnings
	return fit, nil
}

type waterfall struct {
	*design
	cells    *cellModel
	model    *factorModel // of combinations without trials; made when needed
	conf     float64
	tail     float64
	from, to []int
	changes  []int // factors
	all      int   // these, as bits of their places
	known    map[int][]float64
	modelled map[int]bool
	warnings []string
}

func newWaterfall(d *design, conf float64) *waterfall {
	w := &waterfall{design: d, conf: conf, from: make([]int, len(d.factors)), known: map[int][]float64{}, modelled: map[int]bool{}}
	blocked := false
	w.cells, blocked = d.paired()
	w.warnings = append(w.cells.sparse(), d.unpaired(blocked)...)
	w.to = w.cells.cells[w.cells.lowest()]
	for f, l := range w.to {
		if l != 0 {
			w.changes = append(w.changes, f)
		}
	}
	w.all = 1<<len(w.changes) - 1
	w.tail = (1 - conf) / 2 / float64(max(1, len(w.cells.cells)-1))
	return w
}

func (w *waterfall) warn(s string) {
	if !slices.Contains(w.warnings, s) {
		w.warnings = append(w.warnings, s)
	}
}

// cell has the factors of a set at their best level, and all others at 0.
func (w *waterfall) cell(set int) []int {
	levels := slices.Clone(w.from)
	for k, f := range w.changes {
		if set&(1<<k) != 0 {
			levels[f] = w.to[f]
		}
	}
	return levels
}

// weights of the trials in ln(value) of a cell; nil when not even the model has it.
func (w *waterfall) weights(set int) []float64 {
	if v, ok := w.known[set]; ok {
		return v
	}
	levels := w.cell(set)
	v := w.cells.cell(levels)
	if v == nil {
		w.modelled[set] = true
		if w.model == nil {
			w.model = w.design.model()
		}
		if row := w.model.row(levels); row != nil {
			v = w.model.weights(row)
			var mixed []string
			for _, j := range w.model.foreign(row, v) {
				if name := w.name(w.model.of[j]); !slices.Contains(mixed, name) {
					mixed = append(mixed, name)
				}
			}
			if len(mixed) > 0 {
				w.warn(fmt.Sprintf("combinations without trials are taken from the model, as if there were no %s, which the trials do not tell", strings.Join(mixed, ", ")))
			} else {
				w.warn("combinations without trials are taken from the model")
			}
		} else {
			w.warn("a combination between the default and the best has a level without a trial: no step over it can be told")
		}
	}
	w.known[set] = v
	return v
}

// ratio of one sum to another.
func (w *waterfall) ratio(from, to []float64) WaterfallStep {
	if from == nil || to == nil {
		return WaterfallStep{Ratio: unknown(0, "a level has no trial"), Share: math.NaN()}
	}
	return w.part(difference(to, from))
}

func (w *waterfall) part(weights []float64) WaterfallStep {
	by := w.cells.linearFit
	if by.freedom == 0 { // nothing was repeated: the model's misfit has to do
		if w.model == nil {
			w.model = w.design.model()
		}
		by = w.model.linearFit
	}
	step := WaterfallStep{Ratio: by.ratio(weights).interval(w.conf, w.tail), Share: math.NaN()}
	if from, to := w.weights(0), w.weights(w.all); from != nil && to != nil {
		if total := dot(to, w.logs) - dot(from, w.logs); total < -negligible {
			step.Share = dot(weights, w.logs) / total
		}
	}
	return step
}

// next is which of the factors that are left has its turn.
func (w *waterfall) next(at int, left, order []int) int {
	for _, f := range order {
		if k := slices.Index(left, f); k >= 0 {
			return k
		}
	}
	best, least := 0, math.Inf(1)
	for k, f := range left {
		v := w.weights(at | 1<<slices.Index(w.changes, f))
		if v == nil {
			continue
		}
		if then := dot(v, w.logs); then < least-negligible {
			best, least = k, then
		}
	}
	return best
}

// shapley is the share of each factor.
func (w *waterfall) shapley() []WaterfallStep {
	var shares []WaterfallStep
	n := len(w.changes)
	for k, f := range w.changes {
		sum := make([]float64, len(w.logs))
		told, modelled := true, false
		for set := range 1 << n {
			if set&(1<<k) != 0 {
				continue
			}
			without, with := w.weights(set), w.weights(set|1<<k)
			if without == nil || with == nil {
				told = false
				break
			}
			modelled = modelled || w.modelled[set] || w.modelled[set|1<<k]
			// Of the n! orders, |set|!·(n−1−|set|)! have exactly this set before k.
			size := float64(bits.OnesCount(uint(set)))
			a, _ := math.Lgamma(size + 1)
			b, _ := math.Lgamma(float64(n) - size)
			c, _ := math.Lgamma(float64(n) + 1)
			subtract(sum, -math.Exp(a+b-c), difference(with, without))
		}
		share := WaterfallStep{Ratio: unknown(0, "a level has no trial"), Share: math.NaN()}
		if told {
			share = w.part(sum)
		}
		share.Factor, share.Level, share.FromModel = f, w.to[f], modelled
		shares = append(shares, share)
	}
	return shares
}
