package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Assumptions of the estimates. The numbers are rough on purpose: a plan only has to distinguish
// minutes from days.
const (
	// tcpShare is the share of a link's rate on the wire that is payload: 1448 of the 1538 bytes
	// that a full segment takes on Ethernet (with TCP timestamps, preamble and gap).
	tcpShare = 1448.0 / 1538.0
	// unlimitedRate is assumed for a link without a limit, in bytes per second.
	unlimitedRate = 1e9
	// loadRate is the rate at which a started system stores its objects, in bytes per second.
	loadRate = 200e6
	// unknownSize is assumed for whole objects of unknown size, in bytes.
	unknownSize = 100 << 20
	// aroundTrial is the time that a trial takes besides its load, in seconds: the check of the
	// link, the probe of the server, the records.
	aroundTrial = 0.5
	// startSystem is the time to start one system, in seconds.
	startSystem = 2.0
)

// estimate sets the estimate of the plan from those of its cells.
func (p *Plan) estimate() {
	e := &p.Experiment
	var seconds, bytes float64
	bounds, uncertain := []Bound{Exact, AtLeast, Unknown, Open}, 0
	once := map[string]float64{} // preparations shared by cells, in seconds
	prepare := func(what string, takes float64) { once[what] = max(once[what], takes) }
	for _, c := range p.Cells {
		seconds += c.Estimate.Seconds
		bytes += c.Estimate.Bytes
		uncertain = max(uncertain, slices.Index(bounds, c.Estimate.Bound))
		if e.LoadTest() {
			continue // everything else is negligible
		}
		if s := c.Sync; s != nil {
			prepare(c.System, float64(s.Peers)*startNode)
			prepare(fmt.Sprint(c.System, s.Blocks, s.Transactions, s.Form), (makeWork+followWork)*s.work())
			continue
		}
		seconds += aroundTrial
		if d := c.Disseminate; d != nil {
			prepare(c.System, float64(d.Nodes)*startNode)
		} else if !e.System(c.System).Attached() {
			prepare(c.System, startSystem)
			if c.Retrieve != nil { // the other scenarios store little in advance
				prepare(c.System+c.Data.Key(), float64(c.Data.Objects)*float64(c.Data.Size)/loadRate)
			}
		}
	}
	blocks := float64(p.Warmup + p.Blocks)
	total := seconds * blocks
	for _, takes := range once {
		total += takes
	}
	p.Estimate = Estimate{Trials: len(p.Cells) * (p.Warmup + p.Blocks), Seconds: rounded(total),
		Bytes: math.Round(bytes * blocks), Bound: bounds[uncertain]}
}

// rounded rounds a number to three decimals.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func (e *Experiment) estimateCell(c *Cell) CellEstimate {
	rate := c.Link.UpRate() // in the direction of the cell's bytes
	if c.Stores() {
		rate = c.Link.DownRate()
	}
	goodput := cmp.Or(float64(rate)/8*tcpShare, unlimitedRate)
	var est CellEstimate
	switch {
	case c.Overhead != nil:
		est = estimateOverhead(c, goodput, e.Limits)
	case c.Upload != nil:
		est = estimateUpload(c, goodput)
	case c.Collect != nil:
		est = CellEstimate{Seconds: c.Collect.For.Seconds()}
		if c.Collect.For == 0 {
			est.Bound = Open
		}
	case c.Disseminate != nil:
		est = estimateDisseminate(c, e.Limits, e.System(c.System).SeedersOnly)
	case c.Sync != nil:
		est = e.estimateSync(c)
	case c.Retrieve.Arrivals != nil:
		est = openLoop(c.Retrieve, knownBytes(c), goodput)
	default:
		est = closedLoop(c, knownBytes(c), goodput, e.Limits)
	}
	est.Seconds = rounded(est.Seconds)
	est.Bytes = math.Round(est.Bytes)
	est.Operation = rounded(est.Operation)
	return est
}

// System returns the system with that name, which must be the system of a cell.
func (e *Experiment) System(name string) SystemUse {
	return *first(e.Systems, func(s *SystemUse) bool { return s.Name == name })
}

// knownBytes returns the file bytes of one request, or a guess if they are unknown.
func knownBytes(c *Cell) float64 {
	return cmp.Or(float64(requestBytes(c.Data, c.Retrieve)), unknownSize)
}

// operation estimates the seconds of one operation of a number of workers that share the link: the longer
// of its latency (round trips, work, and its bytes alone on the link) and the time to transfer the
// bytes of all workers.
func (c *Cell) operation(workers, trips, work, bytes, goodput float64) float64 {
	return math.Max(work+trips*c.Link.RTT()+bytes/goodput, workers*bytes/goodput)
}

// closedLoop estimates workers that each make requests of n bytes one after the other, until all
// are made or the trial's time is over. An operation ends at its deadline, with the bytes received
// by then.
func closedLoop(c *Cell, n, goodput float64, limits Limits) CellEstimate {
	r := c.Retrieve
	requests := min(unlimited(float64(r.Requests)), unlimited(float64(r.PerWorker)*float64(r.Concurrency)))
	if r.Bytes > 0 {
		requests = min(requests, max(float64(r.Concurrency), math.Ceil(float64(r.Bytes)/n)))
	}
	workers := math.Min(float64(r.Concurrency), requests)
	rounds := 1.0
	if r.Connections == "fresh" {
		rounds = 2
	}
	est := CellEstimate{Operation: c.operation(workers, rounds, 0, n, goodput)}
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	est.Seconds = min(requests/workers*took, unlimited(r.Duration.Seconds()))
	est.Bytes = workers * n * est.Seconds / est.Operation
	return est
}

// unlimited returns +Inf for a rate or a bound that is 0.
func unlimited(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.Inf(1)
}

// openLoop estimates requests that arrive independently of the answers; the link may not be able to
// carry them all.
func openLoop(r *Retrieve, n, goodput float64) CellEstimate {
	a := r.Arrivals
	rate, held := float64(a.Rate), 0.0 // rate of requests per second, and how long they arrive; 0: without end
	switch {
	case a.Process == "steps":
		var arrivals float64
		for _, s := range a.Steps {
			arrivals += float64(s.Rate) * s.For.Seconds()
			held += s.For.Seconds()
		}
		rate = arrivals / held
	case a.Process == "log" && a.Found == nil:
		return CellEstimate{}
	case a.Process == "log":
		held = max(a.Found.Seconds/a.Speed, 1e-3) // the duration of a log with one request is 0 s
		rate, n = float64(a.Found.Requests)/held, float64(a.Found.Bytes)/float64(a.Found.Requests)
	}
	ends := min(unlimited(held), unlimited(r.Duration.Seconds()), unlimited(float64(r.Requests)/rate),
		unlimited(float64(r.Bytes)/n/rate))
	return CellEstimate{Seconds: ends, Operation: n / goodput, Bytes: ends * math.Min(rate*n, goodput)}
}

// text formats the time and the bytes of an estimate for the user.
func (b Bound) text(seconds, bytes float64) (took, moved string) {
	took, moved = words.Span(seconds), words.Bytes(bytes)
	switch b {
	case AtLeast:
		took = "at least " + took
	case Unknown:
		took, moved = "unknown", "unknown"
	case Open:
		took = "until it ends"
	}
	return took, moved
}

// content returns the noun for the bytes of the plan.
func (p *Plan) content() string {
	if p.Experiment.Sync != nil {
		return "chain bytes"
	}
	return "file bytes"
}

// EstimateText returns the estimate in words: "2.7 s and 151 MB of file bytes", "at least 3 h 03
// min and …", or why there is none.
func (p *Plan) EstimateText() string {
	took, moved := p.Estimate.Bound.text(p.Estimate.Seconds, p.Estimate.Bytes)
	switch {
	case p.Estimate.Bound == Unknown:
		return "unknown: the data set is read when the run begins"
	case p.Estimate.Bytes == 0:
		return took
	}
	return took + " and " + moved + " of " + p.content()
}
