package stats

import (
	"cmp"
	"math"
	"slices"
)

// segment looks for a step function R(size) when one R does not hold, and
// returns the best fit, which may be the one it was given: without repeated
// cells always, since nothing then says that one R does not hold.
//
// TCP's slow start makes R grow with size, and a file that is kept in its own
// reference never leaves the client: R = 0 up to some size. Segments are
// contiguous ranges of the sizes measured. In the second case the servers' part
// of the constant falls away too, so the first segment may have its own A; more
// constants are not tried, because between two sizes a step of A and a slope B
// cannot be told apart, while below the threshold B·size is next to nothing
// (see believable).
//
// The search: the model with an R for every size is linear, and whatever the
// segments are it gives A and B without bias. With these, dynamic programming
// finds the best borders for each number of segments (Bellman 1961; Bai and
// Perron 2003, Computation and analysis of multiple structural change models);
// each is fitted anew with all its parameters, borders are moved as long as
// that helps, and Schwarz's criterion chooses (Yao 1988; robust: Ronchetti
// 1985), counting each border as a parameter.
func (f *costFit) segment() *costFit {
	if p := f.lackOfFitP(); !f.form.hasR || math.IsNaN(p) || p >= lackOfFit {
		return f
	}
	s := segmentSearch{groups: sizeGroups(f.cells), noise: f.noise, cells: f.cells}
	// The richest models: an R for every size; and the same for the sizes from
	// the first border on, below which A differs.
	var rich []*costFit
	var first []int
	for border := range max(len(s.groups)-1, 0) {
		form := costForm{starts: s.groups, hasR: true, hasB: f.form.hasB}
		if border > 0 {
			form.starts, form.ownA = slices.Concat(s.groups[:1], s.groups[border:]), true
		}
		if form.parameters() >= len(s.cells) {
			continue
		}
		if fit, err := fitForm(form, s.noise, s.cells); err == nil {
			rich, first = append(rich, fit), append(first, border)
		}
	}
	// What even the best of them leaves over is not for segments to explain.
	s.unit = math.Inf(1)
	for _, r := range rich {
		s.unit = min(s.unit, max(1, r.overspread()))
	}
	best := candidate{f, math.Inf(1)}
	if len(rich) > 0 {
		best.criterion = s.criterion(f)
	}
	var shared, own []guess
	for i, r := range rich {
		if r.form.ownA {
			own = append(own, s.borders(r, first[i])...)
		} else {
			shared = append(shared, s.borders(r, first[i])...)
		}
	}
	for _, guesses := range [][]guess{shared, own} {
		slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.criterion, b.criterion) })
		for _, g := range guesses[:min(tries, len(guesses))] {
			if c, ok := s.polish(g.form); ok && c.fit.believable() && c.criterion < best.criterion {
				best = c
			}
		}
	}
	return best.fit
}

// tries is how many guesses with and without an own A are fitted: what the rich
// models say of them is off by no more than the errors of their A and B.
const tries = 3

// believable reports whether a first segment with its own A is one that never
// leaves the client: less than half a round trip, and bytes that cost less than
// half the constant. Otherwise a rate that changes with size would pass for it.
func (f *costFit) believable() bool {
	if !f.form.ownA {
		return true
	}
	a, r := f.beta[f.form.indexA(0)], f.beta[f.form.indexR(0)]
	bytes := 0.0
	for _, c := range f.cells {
		if f.form.hasB && f.form.segment(c.size) == 0 {
			bytes = max(bytes, f.beta[len(f.beta)-1]*c.size)
		}
	}
	return math.Abs(r) < 0.5 && bytes < a/2
}

// guess is a form with its criterion at the rich model's A and B.
type guess struct {
	form      costForm
	criterion float64
}

// sizeGroups are the smallest sizes of the finest segments in which R can be
// told: neighbouring sizes that must share one because a single round trip was
// measured are together.
func sizeGroups(cells []costCell) []float64 {
	var starts []float64
	from := 0
	for i := range cells {
		last := i+1 == len(cells)
		if !last && cells[i+1].size == cells[i].size {
			continue
		}
		if rttsVary(cells[from : i+1]) {
			starts = append(starts, cells[from].size)
			from = i + 1
		}
	}
	// The rest, if any, belongs to the last group.
	return starts
}

type candidate struct {
	fit       *costFit
	criterion float64
}

type segmentSearch struct {
	groups []float64
	noise  costNoise
	cells  []costCell
	unit   float64 // spread of the residuals, in standard errors, that no segments explain
}

// overspread is the root of the residuals' winsorised mean square per degree of
// freedom.
func (f *costFit) overspread() float64 {
	left := len(f.cells) - len(f.beta)
	if left <= 0 {
		return 1
	}
	squares := 0.0
	for _, r := range f.residual {
		r = min(math.Abs(r), 3*f.sigma)
		squares += r * r
	}
	return math.Sqrt(squares / float64(left))
}

// criterion is Schwarz's with Huber's function for the square of the residuals.
func (s segmentSearch) criterion(f *costFit) float64 {
	sum := s.penalty(f.form)
	for _, r := range f.residual {
		sum += 2 * huberLoss(r/s.unit)
	}
	return sum
}

// penalty counts each border as a parameter, and the first segment's own A
// twice: it comes with a border of its own to choose.
func (s segmentSearch) penalty(form costForm) float64 {
	parameters := form.parameters() + len(form.starts) - 1
	if form.ownA {
		parameters++
	}
	return float64(parameters) * math.Log(float64(len(s.cells)))
}

// polish fits a form, and its neighbours as long as one is better.
func (s segmentSearch) polish(form costForm) (candidate, bool) {
	fit, err := fitForm(form, s.noise, s.cells)
	if err != nil {
		return candidate{}, false
	}
	best := candidate{fit, s.criterion(fit)}
	for improved := true; improved; {
		improved = false
		for k := 1; k < len(best.fit.form.starts); k++ {
			at := slices.Index(s.groups, best.fit.form.starts[k])
			for _, to := range []int{at - 1, at + 1} {
				if to < 1 || to >= len(s.groups) {
					continue
				}
				moved := best.fit.form
				moved.starts = slices.Clone(moved.starts)
				moved.starts[k] = s.groups[to]
				if !slices.IsSorted(moved.starts) || len(slices.Compact(slices.Clone(moved.starts))) < len(moved.starts) {
					continue
				}
				fit, err := fitForm(moved, s.noise, s.cells)
				if err != nil {
					continue
				}
				if c := s.criterion(fit); c < best.criterion {
					best, improved = candidate{fit, c}, true
				}
			}
		}
	}
	return best, true
}

// borders finds, for each number of segments from two on, those with the least
// misfit to the rich model's A and B. When the groups before first have their
// own A, they are the first segment.
func (s segmentSearch) borders(rich *costFit, first int) []guess {
	n := len(s.groups)
	inFirst := 0.0
	for g, c := range s.cells {
		if first > 0 && c.size < s.groups[first] {
			inFirst += 2 * huberLoss(rich.residual[g]/s.unit)
		}
	}
	misfit := make([][]float64, n)
	for i := first; i < n; i++ {
		misfit[i] = make([]float64, n+1)
		for j := i + 1; j <= n; j++ {
			misfit[i][j] = s.misfit(rich, i, j)
		}
	}
	var all []guess
	best := make([]float64, n+1) // of the groups from first to before j, in k segments
	last := [][]int{}
	for j := range best {
		best[j] = math.Inf(1)
	}
	best[first] = 0
	for k := 1; k <= n-first; k++ {
		next, from := make([]float64, n+1), make([]int, n+1)
		for j := range next {
			next[j] = math.Inf(1)
			for i := first; i < j; i++ {
				if c := best[i] + misfit[i][j]; c < next[j] {
					next[j], from[j] = c, i
				}
			}
		}
		best, last = next, append(last, from)
		starts := make([]float64, k)
		for i, j := k-1, n; i >= 0; i-- {
			j = last[i][j]
			starts[i] = s.groups[j]
		}
		if first > 0 {
			starts = slices.Concat(s.groups[:1], starts)
		}
		if len(starts) > 1 {
			form := costForm{starts: starts, ownA: first > 0, hasR: true, hasB: rich.form.hasB}
			all = append(all, guess{form, inFirst + best[n] + s.penalty(form)})
		}
	}
	return all
}

// misfit is what [criterion] would sum over the cells of the groups [from, to)
// about the best R, given A and B and the standard errors of the rich model.
func (s segmentSearch) misfit(rich *costFit, from, to int) float64 {
	end := math.Inf(1)
	if to < len(s.groups) {
		end = s.groups[to]
	}
	var sxx, sxy float64
	var x, y []float64
	for g, c := range s.cells {
		if c.size < s.groups[from] || c.size >= end {
			continue
		}
		rest := s.noise.time(c.at) - rich.beta[0]
		if rich.form.hasB {
			rest -= rich.beta[len(rich.beta)-1] * c.size
		}
		w := s.noise.slope(rich.expectation(g, rich.beta)) * rich.precision(g) / s.unit
		x, y = append(x, w*c.rtt), append(y, w*rest)
		sxx += w * c.rtt * w * c.rtt
		sxy += w * c.rtt * w * rest
	}
	sum := 0.0
	for i := range x {
		sum += 2 * huberLoss(y[i]-sxy/sxx*x[i])
	}
	return sum
}
