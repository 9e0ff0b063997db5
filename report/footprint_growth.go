package report

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
)

// growthFloor is how much of each file byte a process must keep in memory for
// its memory to count as growing with the file.
const growthFloor = 0.1

// growthSizes is the share of the largest size from which on objects enter the
// slope of memory over size.
const growthSizes = 0.01

// grow tells whether the peak of one upload rises with its size. What a process
// still holds of an earlier, larger object is in the peak of a smaller one and
// makes the slope too flat. So a slope may show growth over all trials, but its
// absence only over those before which nothing larger was handled, or by the
// little that the largest upload had above rest.
func (m *Memory) grow() {
	if !m.OneSize.Known() {
		return
	}
	largest := float64(m.OneSize)
	if m.RestRSS.Value.Known() && largest > 0 {
		m.AtMost = Num(max(0, slices.Max(m.at(1)[largest])-float64(m.RestRSS.Value)) / largest)
	}
	own, all := m.slope(true), m.slope(false)
	bounded := own.Lo.Known() && own.Hi.Known()
	switch {
	case bounded && own.Lo > growthFloor:
		m.Growth, m.Grows = own, "yes"
	case bounded && own.Hi < growthFloor:
		m.Growth, m.Grows = own, "no"
	case m.AtMost < growthFloor:
		m.Grows = "no"
	case all.Lo > growthFloor:
		m.Growth, m.Grows, m.AtLeast = all, "yes", true
	case bounded:
		m.Growth, m.Why = own, "the interval of the slope is too wide"
	case len(m.at(1)) < 2:
		m.Why = "only one size was uploaded"
	case all.Lo.Known():
		m.Why = "smaller objects came after larger ones, whose memory the process may still have held"
	default:
		m.Why = "there are too few trials"
	}
}

// slope is that of the peak of one upload over its size, with objects far
// smaller than the largest left out: they tell nothing of it but its noise.
func (m *Memory) slope(own bool) Estimate {
	var x, y []float64
	few := func(from float64) {
		x, y = nil, nil
		for _, p := range m.points {
			if p.cell.overhead().Concurrency <= 1 && p.cell.size() >= from && (p.own || !own) {
				x, y = append(x, p.cell.size()), append(y, p.peak)
			}
		}
	}
	few(float64(m.OneSize) * growthSizes)
	if len(x) == 0 || slices.Min(x) == slices.Max(x) {
		few(0)
	}
	if len(x) == 0 || slices.Min(x) == slices.Max(x) {
		return noEstimate
	}
	return estimateOf(stats.Slope(x, y, Confidence))
}
