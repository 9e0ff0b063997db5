package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Load is one trial of something under N users at a time, which got X done per
// second. Trials of one Block were executed near each other.
type Load struct {
	N, X  float64
	Block int
}

// The laws of scalability that [FitScaling] compares, from the plain to the rich:
// each has the one before as its special case.
const (
	Proportional = "proportional" // X = λN
	Contention   = "contention"   // Amdahl: κ = 0. It levels off at λ/σ
	Coherency    = "coherency"    // the universal scalability law: it falls beyond N*
)

// Scaling is the universal scalability law of Gunther (Guerrilla Capacity Planning,
// 2007, ch. 4 to 6), fitted:
//
//	X(N) = λN / (1 + σ(N − 1) + κN(N − 1))
//
// λ is the throughput of one user, 0 ≤ σ ≤ 1 the share of the work for which users
// wait in one queue, κ ≥ 0 what each pair of them costs. X is largest at
// N* = √((1 − σ)/κ).
type Scaling struct {
	Lambda, Sigma, Kappa Interval
	Peak                 Interval // N*; Mid and Hi are +Inf where the data do not bound it
	PeakX                Interval // X(N*)
	Law                  string   // the best by AICc
	AICc                 [3]float64
	Likelier             float64 // how much likelier the whole law is than the better of the others: exp(Δ AICc / 2)
	Levels               []Level
	Misfit               float64 // the largest relative distance of a level's mean from the curve
	Holds                bool    // the distances of levels from the curve are not more than trials explain, or small
	Falls                float64 // p that X is no lower at the highest N than where it is largest (Holm over the levels)
	Knee                 bool    // N* is shown, between the least and the highest N
	Why                  string  // what keeps Knee from being so
}

// Level is what the trials of one N say.
type Level struct {
	N    float64
	X    float64 // geometric mean
	Fell float64 // p (one-sided, Welch) that X at the highest N is not below this
	n    int
	logs []float64
	rows []int // blocks
}

// Limits of what [FitScaling] concludes.
const (
	// FewestLevels is three parameters and something left to see that they do not fit.
	FewestLevels = 4
	// Below two trials of each level there is no noise to compare with.
	fewestAtLevel = 2
	// The whole law is preferred where it is this much likelier (Burnham and Anderson 2002).
	muchLikelier = 20
	// A law that is off by less than this at each level is a fair description, whether
	// or not trials are so alike that they show it to be off.
	fairFit = 0.10
	// That X falls is shown at this level: of a hundred loads that level off at most
	// one is said to fall.
	fallAlpha = 0.01
	// Drawn for each interval; its ends are then the 50th values from either end.
	scalingDraws = 2000
)

// At is the fitted throughput of n users.
func (s *Scaling) At(n float64) float64 {
	return s.Lambda.Mid * n / (1 + s.Sigma.Mid*(n-1) + s.Kappa.Mid*n*(n-1))
}

// FitScaling fits the law to trials by least squares of ln X, which weighs each by
// 1/X²: throughput varies in proportion to itself. The search is begun at several
// places.
//
// Intervals are of a bootstrap that draws blocks, where each has a trial of every
// level and there are six or more, else trials within their level; deviations of
// the drawn means are widened by √(n/(n−1)) (Rao and Wu 1988) and by Student's
// quantile over the normal's. The law is compared with its special cases by AICc.
//
// A knee is claimed only when the law describes the levels, is 20 times as likely
// as the others, the whole interval of N* lies between the levels, and X at the
// highest level is below that of another by Welch's test after Holm's correction:
// what levels off at a link has no knee, however well the law may bend to it.
func FitScaling(trials []Load, conf float64, seed uint64) (Scaling, error) {
	return fitScaling(trials, conf, seed, scalingDraws)
}

func fitScaling(trials []Load, conf float64, seed uint64, draws int) (Scaling, error) {
	levels, err := levelsOf(trials)
	if err != nil {
		return Scaling{}, err
	}
	var s Scaling
	s.Levels = levels
	means := meansOf(levels)
	full := bestLaw(levels, means, true, true)
	within, freedom := 0.0, 0
	n := 0
	for i, l := range levels {
		for _, y := range l.logs {
			within += sq(y - means[i])
		}
		freedom += len(l.logs) - 1
		n += len(l.logs)
	}
	for i, law := range []law{bestLaw(levels, means, false, false), bestLaw(levels, means, true, false), full} {
		s.AICc[i] = aicc(within+law.ss, n, i+2)
	}
	s.Law = [...]string{Proportional, Contention, Coherency}[slices.Index(s.AICc[:], slices.Min(s.AICc[:]))]
	s.Likelier = math.Exp((min(s.AICc[0], s.AICc[1]) - s.AICc[2]) / 2)
	for i, l := range levels {
		s.Misfit = max(s.Misfit, math.Abs(math.Expm1(means[i]-full.log(l.N))))
	}
	s.Holds = s.Misfit < fairFit
	if left := len(levels) - 3; !s.Holds && within > 0 {
		f := distuv.F{D1: float64(left), D2: float64(freedom)}
		s.Holds = f.Survival(full.ss/float64(left)/(within/float64(freedom))) >= 0.01
	}
	s.fall()
	s.intervals(full, conf, seed, draws)
	s.judge()
	return s, nil
}

// judge says whether there is a knee.
func (s *Scaling) judge() {
	lo, hi := s.Levels[0].N, s.Levels[len(s.Levels)-1].N
	switch {
	case !s.Holds:
		s.Why = fmt.Sprintf("the law does not describe these levels: one is off by %.0f %%", 100*s.Misfit)
	case !(s.Falls < fallAlpha):
		s.Why = fmt.Sprintf("throughput is not shown to fall up to %g", hi)
	case s.Likelier < muchLikelier:
		s.Why = "a law without a peak is nearly as likely"
	case !(s.Peak.Lo > lo && s.Peak.Hi < hi):
		s.Why = fmt.Sprintf("the peak is not shown to lie between the levels measured, %g and %g", lo, hi)
	default:
		s.Knee = true
	}
}

// levelsOf sorts trials into levels.
func levelsOf(trials []Load) ([]Level, error) {
	byN := map[float64]*Level{}
	for _, t := range trials {
		if !(t.N >= 1) || !(t.X > 0) || math.IsInf(t.N, 0) || math.IsInf(t.X, 0) {
			return nil, fmt.Errorf("scaling: a trial of %v users with a throughput of %v; both must be positive and finite", t.N, t.X)
		}
		l := byN[t.N]
		if l == nil {
			l = &Level{N: t.N, Fell: 1}
			byN[t.N] = l
		}
		l.logs, l.rows = append(l.logs, math.Log(t.X)), append(l.rows, t.Block)
	}
	var levels []Level
	for _, l := range byN {
		l.n, l.X = len(l.logs), math.Exp(mean(l.logs))
		levels = append(levels, *l)
	}
	slices.SortFunc(levels, func(a, b Level) int { return cmp.Compare(a.N, b.N) })
	if len(levels) < FewestLevels {
		return nil, fmt.Errorf("scaling: %d levels of concurrency; at least %d are needed", len(levels), FewestLevels)
	}
	for _, l := range levels {
		if l.n < fewestAtLevel {
			return nil, fmt.Errorf("scaling: a single trial at %g; at least %d of each level are needed", l.N, fewestAtLevel)
		}
	}
	return levels, nil
}

func meansOf(levels []Level) []float64 {
	m := make([]float64, len(levels))
	for i, l := range levels {
		m[i] = mean(l.logs)
	}
	return m
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func sq(x float64) float64 { return x * x }

// law is a fit to the levels' means.
type law struct {
	level, sigma, kappa float64 // ln λ
	ss                  float64 // squares left between the means and the curve, times trials
}

func (l law) log(n float64) float64 {
	return l.level + math.Log(n) - math.Log1p(l.sigma*(n-1)+l.kappa*n*(n-1))
}

func (l law) peak() float64 {
	if l.kappa <= 0 {
		return math.Inf(1)
	}
	return max(1, math.Sqrt((1-l.sigma)/l.kappa))
}

// lawAt is the law of a σ and a κ with the λ that suits the means best: squares of
// ln X over trials are those over means and a rest that no parameter changes.
func lawAt(levels []Level, means []float64, sigma, kappa float64) law {
	l := law{sigma: sigma, kappa: kappa}
	sum, weight := 0.0, 0.0
	for i := range levels {
		w := float64(levels[i].n)
		sum += w * (means[i] - l.log(levels[i].N))
		weight += w
	}
	l.level = sum / weight
	for i := range levels {
		l.ss += float64(levels[i].n) * sq(means[i]-l.log(levels[i].N))
	}
	return l
}

// bestLaw minimizes over the parameters that are free, from each of several starts by
// Levenberg and Marquardt's method within the bounds. A general minimizer gives the
// same (tested) a hundred times slower, and a bootstrap needs thousands of fits.
func bestLaw(levels []Level, means []float64, sigma, kappa bool, starts ...law) law {
	best := lawAt(levels, means, 0, 0)
	if !sigma && !kappa {
		return best
	}
	if starts == nil {
		top := levels[len(levels)-1].N
		starts = []law{{sigma: 0.02, kappa: 0.1 / sq(top)}, {sigma: 0.3, kappa: 1e-3 / sq(top)}, {sigma: 1e-4, kappa: 1 / top}, {}}
	}
	for _, s := range starts {
		if !kappa {
			s.kappa = 0
		}
		if l := descend(levels, means, s.sigma, s.kappa, kappa); l.ss < best.ss {
			best = l
		}
	}
	return best
}

// descend goes downhill from one place; κ stays where it is unless it is free.
func descend(levels []Level, means []float64, sigma, kappa float64, free bool) law {
	at := lawAt(levels, means, sigma, kappa)
	damp := 1e-3
	for range 200 {
		// Slopes of the curve, without what λ takes up, and the normal equations.
		var ds, dk, weight float64
		for _, l := range levels {
			w, d := float64(l.n), 1+at.sigma*(l.N-1)+at.kappa*l.N*(l.N-1)
			ds, dk, weight = ds-w*(l.N-1)/d, dk-w*l.N*(l.N-1)/d, weight+w
		}
		ds, dk = ds/weight, dk/weight
		var ss, kk, sk, gs, gk float64
		for i, l := range levels {
			w, d := float64(l.n), 1+at.sigma*(l.N-1)+at.kappa*l.N*(l.N-1)
			s, k, left := -(l.N-1)/d-ds, -l.N*(l.N-1)/d-dk, means[i]-at.log(l.N)
			ss, kk, sk, gs, gk = ss+w*s*s, kk+w*k*k, sk+w*s*k, gs+w*s*left, gk+w*k*left
		}
		// A parameter at its bound that would leave it stays there.
		moveS := !(at.sigma <= 0 && gs < 0 || at.sigma >= 1 && gs > 0)
		moveK := free && !(at.kappa <= 0 && gk < 0)
		stepS, stepK := 0.0, 0.0
		switch a, b := ss*(1+damp), kk*(1+damp); {
		case moveS && moveK:
			det := a*b - sk*sk
			stepS, stepK = (gs*b-gk*sk)/det, (gk*a-gs*sk)/det
		case moveS:
			stepS = gs / a
		case moveK:
			stepK = gk / b
		}
		next := lawAt(levels, means, min(1, max(0, at.sigma+stepS)), max(0, at.kappa+stepK))
		if !(next.ss < at.ss) {
			if damp *= 10; damp > 1e12 {
				break
			}
			continue
		}
		done := at.ss-next.ss <= 1e-12*at.ss
		at, damp = next, damp/10
		if done {
			break
		}
	}
	return at
}

// aicc is Akaike's criterion of least squares, corrected for few values; the
// noise's spread is one of k parameters.
func aicc(ss float64, n, k int) float64 {
	if n-k-1 <= 0 {
		return math.Inf(1)
	}
	f, p := float64(n), float64(k)
	return f*math.Log(max(ss, 1e-18)/f) + 2*p + 2*p*(p+1)/(f-p-1)
}

// fall tests the highest level against each of the others.
func (s *Scaling) fall() {
	top := &s.Levels[len(s.Levels)-1]
	ps := make([]float64, len(s.Levels)-1)
	for i := range ps {
		ps[i] = welchBelow(top.logs, s.Levels[i].logs)
	}
	s.Falls = 1
	for i, p := range Holm(ps) {
		s.Levels[i].Fell = p
		s.Falls = min(s.Falls, p)
	}
}

// welchBelow is the one-sided p that the mean of a is not below that of b (Welch
// 1947).
func welchBelow(a, b []float64) float64 {
	va, vb := variance(a)/float64(len(a)), variance(b)/float64(len(b))
	d := mean(a) - mean(b)
	if va+vb == 0 {
		if d < 0 {
			return 0
		}
		return 1
	}
	freedom := sq(va+vb) / (sq(va)/float64(len(a)-1) + sq(vb)/float64(len(b)-1))
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.CDF(d / math.Sqrt(va+vb))
}

func variance(xs []float64) float64 {
	m, sum := mean(xs), 0.0
	for _, x := range xs {
		sum += sq(x - m)
	}
	return sum / float64(len(xs)-1)
}

// fewestBlocks is from how many blocks on they are drawn instead of trials.
const fewestBlocks = 6

// intervals are those of the bootstrap.
func (s *Scaling) intervals(full law, conf float64, seed uint64, draws int) {
	rng := rand.New(rand.NewPCG(seed, 0x75736c))
	levels, means := s.Levels, meansOf(s.Levels)
	rows := interleaved(levels)
	n, freedom := 0, 0
	for _, l := range levels {
		n += l.n
		freedom += l.n - 1
	}
	if rows != nil {
		freedom = rows.n - 1
	}
	wider := distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}.Quantile((1+conf)/2) / distuv.UnitNormal.Quantile((1+conf)/2)
	var lambda, sigma, kappa, peak, at []float64
	drawn := make([]float64, len(levels))
	for range draws {
		if rows != nil {
			rows.draw(rng, drawn)
		} else {
			for i, l := range levels {
				sum := 0.0
				for range l.n {
					sum += l.logs[rng.IntN(l.n)]
				}
				drawn[i] = sum / float64(l.n)
			}
		}
		for i, l := range levels {
			of := float64(l.n)
			drawn[i] = means[i] + (drawn[i]-means[i])*wider*math.Sqrt(of/(of-1))
		}
		d := bestLaw(levels, drawn, true, true, full, law{sigma: full.sigma + 0.01, kappa: full.kappa/2 + 0.01/sq(levels[len(levels)-1].N)})
		p := d.peak()
		lambda, sigma, kappa, peak = append(lambda, math.Exp(d.level)), append(sigma, d.sigma), append(kappa, d.kappa), append(peak, p)
		at = append(at, math.Exp(d.log(min(p, levels[len(levels)-1].N))))
	}
	of := func(mid float64, all []float64) Interval {
		slices.Sort(all)
		k := int((1 - conf) / 2 * float64(len(all)))
		return Interval{Mid: mid, Lo: all[k], Hi: all[len(all)-1-k], Conf: conf, N: n}
	}
	s.Lambda, s.Sigma, s.Kappa, s.Peak = of(math.Exp(full.level), lambda), of(full.sigma, sigma), of(full.kappa, kappa), of(full.peak(), peak)
	s.PeakX = of(math.Exp(full.log(min(full.peak(), levels[len(levels)-1].N))), at)
}

// blocksOf are the logarithms by block and level.
type blocksOf struct {
	n    int
	logs [][]float64
}

// interleaved is nil unless each block has one trial of each level.
func interleaved(levels []Level) *blocksOf {
	at := map[int]int{}
	for i, b := range levels[0].rows {
		at[b] = i
	}
	if len(at) != levels[0].n || len(at) < fewestBlocks {
		return nil
	}
	rows := make([][]float64, len(at))
	for i := range rows {
		rows[i] = make([]float64, len(levels))
	}
	for k, l := range levels {
		seen := map[int]bool{}
		for i, b := range l.rows {
			row, ok := at[b]
			if !ok || seen[b] {
				return nil
			}
			seen[b], rows[row][k] = true, l.logs[i]
		}
		if len(seen) != len(at) {
			return nil
		}
	}
	return &blocksOf{len(rows), rows}
}

// draw fills the means of blocks drawn with replacement.
func (b *blocksOf) draw(rng *rand.Rand, means []float64) {
	clear(means)
	for range b.n {
		for k, y := range b.logs[rng.IntN(b.n)] {
			means[k] += y / float64(b.n)
		}
	}
}
