package experiment

import "math"

// Kinds of [Speeds].
const (
	SpeedsLognormal  = "lognormal"
	SpeedsUniform    = "uniform"
	SpeedsLoguniform = "loguniform"
	SpeedsList       = "list"
)

// Speeds are the rates at which the peers of a fresh node send.
type Speeds struct {
	Kind   string    // one of the constants, or "link": as the links
	Median BitRate   // lognormal
	Spread float64   // lognormal: the geometric standard deviation, at least 1
	From   BitRate   // uniform, loguniform
	To     BitRate   // uniform, loguniform
	List   []BitRate // list: taken in turn
}

// tail is the share at either end of a lognormal distribution from which nothing
// is drawn: 3.1 standard deviations from its median.
const tail = 0.001

// Draw is the rates of n peers, in their order; 0 is that of the link. uniform
// gives numbers from 0 up to but not including 1; it is asked once for each peer
// where rates are drawn, so that the first peers of many have what as few would
// have.
func (v Speeds) Draw(n int, uniform func() float64) []BitRate {
	rates := make([]BitRate, n)
	for i := range rates {
		switch v.Kind {
		case SpeedsLognormal:
			u := min(1-tail, max(tail, uniform()))
			normal := math.Sqrt2 * math.Erfinv(2*u-1)
			rates[i] = max(1, BitRate(math.Round(float64(v.Median)*math.Pow(v.Spread, normal))))
		case SpeedsUniform:
			rates[i] = BitRate(math.Round(float64(v.From) + uniform()*float64(v.To-v.From)))
		case SpeedsLoguniform:
			rates[i] = BitRate(math.Round(float64(v.From) * math.Pow(float64(v.To/v.From), uniform())))
		case SpeedsList:
			rates[i] = v.List[i%len(v.List)]
		}
	}
	return rates
}

// Manners of peers that are of little use, as in package system.
const (
	MannerSilent   = "silent"   // takes connections and answers nothing
	MannerStranger = "stranger" // has another chain
)

// Trouble is a group of peers that are of little use.
type Trouble struct {
	Manner string  // one of the constants; empty: see Rate
	Count  int     // of the peers; 0: see Share
	Share  float64 // of the peers, rounded up to a whole one
	Rate   BitRate // at which they send
}

// Of is how many of n peers the group has, which may be more than n.
func (t Trouble) Of(n int) int {
	if t.Count > 0 {
		return t.Count
	}
	return shareOf(n, t.Share)
}

// Whom the faults of a sync are about.
const (
	WhoPeers = "peers"
	WhoNode  = "node" // the fresh one
)

// maxPeers is the most peers that a fresh node may have.
const maxPeers = 64
