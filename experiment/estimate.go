package experiment

import (
	"cmp"
	"math"
)

// What an estimate assumes. The numbers are rough on purpose: the plan shall
// distinguish minutes from days.
const (
	// tcpShare of a link's rate on the wire is payload: 1448 bytes of each
	// 1538 that a full segment takes on Ethernet (TCP timestamps, preamble and
	// gap included).
	tcpShare = 1448.0 / 1538.0
	// initialWindow is the first flight of a TCP connection (RFC 6928).
	initialWindow = 10 * 1448.0
	// unlimitedRate is assumed for a link without a limit, in bytes per second.
	unlimitedRate = 1e9
	// loadRate is how fast a started system takes its objects, in bytes per second.
	loadRate = 200e6
	// unknownSize is assumed for whole objects of unknown size, in bytes.
	unknownSize = 100 << 20
	// aroundTrial is what a trial takes beside its load: the check of the
	// link, the probe of the server, the books. Seconds.
	aroundTrial = 0.5
	// startSystem is what starting one system takes. Seconds.
	startSystem = 2.0
)

// estimate fills in the estimates of all cells and of the plan.
func (p *Plan) estimate() {
	e := &p.Experiment
	var seconds, bytes float64
	for i := range p.Cells {
		p.Cells[i].Estimate = e.estimateCell(&p.Cells[i])
	}
	p.skipLong()
	for _, c := range p.Cells {
		seconds += c.Estimate.Seconds
		if !e.LoadTest() && e.Sync == nil {
			seconds += aroundTrial // beside the least that a load test takes it is nothing that is sure
		}
		bytes += c.Estimate.Bytes
	}
	blocks := float64(p.Warmup + p.Blocks)
	setup := 0.0
	for _, s := range e.Systems {
		swarm := p.largestSwarm(s.Name)
		switch {
		case e.Sync != nil:
			setup += p.syncSetup(s.Name)
		case s.Mode != "start" || e.LoadTest():
		case swarm > 0:
			setup += float64(swarm) * startNode
		default:
			setup += startSystem
		}
		if e.Retrieve != nil && s.Mode == "start" { // what the others read is little beside what they write
			for _, a := range e.axes() {
				for _, size := range a.levels {
					if a.path == dataSizePath {
						setup += float64(e.Data.Objects) * number(size) / loadRate
					}
				}
			}
		}
	}
	p.Estimate = Estimate{
		Trials:  len(p.Cells) * (p.Warmup + p.Blocks),
		Seconds: rounded(seconds*blocks + setup),
		Bytes:   math.Round(bytes * blocks),
		Bound:   boundOf(p.Cells),
	}
}

// rounded is a number to three decimals.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func (e *Experiment) estimateCell(c *Cell) CellEstimate {
	goodput := float64(c.pathRate()) / 8 * tcpShare
	if goodput == 0 {
		goodput = unlimitedRate
	}
	var est CellEstimate
	switch {
	case c.Overhead != nil:
		est = estimateOverhead(c, goodput, e.Limits)
	case c.Upload != nil:
		est = estimateUpload(c, goodput)
	case c.Collect != nil:
		est = estimateCollect(c.Collect)
	case c.Disseminate != nil:
		est = estimateDisseminate(c, e.Limits, e.alone(c.System))
	case c.Sync != nil:
		est = e.estimateSync(c)
	case c.Retrieve == nil:
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

// knownBytes is the file bytes of one request, a guess where they are not known.
func knownBytes(c *Cell) float64 {
	return cmp.Or(float64(requestBytes(c.Data, c.Retrieve)), unknownSize)
}

// operation is one of so many that share the link: it takes the longer of what latency
// allows (round trips, work, its bytes alone on the link) and of what the link allows.
func (c *Cell) operation(workers, trips, work, bytes, goodput float64) CellEstimate {
	latency := work + trips*c.Link.RTT() + bytes/goodput
	if shared := workers * bytes / goodput; shared > latency {
		return CellEstimate{Operation: shared, Limit: "link"}
	}
	return CellEstimate{Operation: latency, Limit: "latency"}
}

// closedLoop: workers make requests of n bytes one after the other.
func closedLoop(c *Cell, n, goodput float64, limits Limits) CellEstimate {
	r := c.Retrieve
	requests := least(float64(r.Requests), float64(r.PerWorker)*float64(r.Concurrency))
	if r.Bytes > 0 {
		requests = least(requests, math.Max(float64(r.Concurrency), math.Ceil(float64(r.Bytes)/n)))
	}
	workers := math.Min(float64(r.Concurrency), requests)
	rtt := c.Link.RTT()
	rounds := 1.0
	slowStart := math.Max(0, math.Ceil(math.Log2(math.Min(n, goodput*rtt)/initialWindow+1))-1)
	if r.Connections == "fresh" {
		rounds += 1 + slowStart
	}
	est := c.operation(workers, rounds, 0, n, goodput)
	// An operation ends at its deadline, with the bytes it has by then.
	est.Operation = math.Min(est.Operation, 1e9)
	took := math.Min(est.Operation, limits.Deadline.Seconds())
	share := took / est.Operation
	if est.Operation == 0 {
		share = 1
	}
	est.Seconds = requests / workers * took
	if r.Connections != "fresh" {
		est.Seconds += slowStart * rtt
	}
	est.Bytes = requests * n * share
	if d := r.Duration.Seconds(); d > 0 && est.Seconds > d {
		est.Seconds = d
		est.Bytes = workers * n * d / est.Operation
	}
	return est
}

// least is the least of the bounds that there are, which are above 0.
func least(bounds ...float64) float64 {
	all := math.Inf(1)
	for _, b := range bounds {
		if b > 0 {
			all = math.Min(all, b)
		}
	}
	return all
}

// openLoop: requests come by themselves; the link may not carry them all.
func openLoop(r *Retrieve, n, goodput float64) CellEstimate {
	a := r.Arrivals
	rate, held := float64(a.Rate), 0.0 // for which requests arrive; 0: without end
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
		held = max(a.Found.Seconds/a.Speed, 1e-3) // of one request: none
		rate, n = float64(a.Found.Requests)/held, float64(a.Found.Bytes)/float64(a.Found.Requests)
	}
	ends := least(held, r.Duration.Seconds(), float64(r.Requests)/rate, float64(r.Bytes)/n/rate)
	est := CellEstimate{Seconds: ends, Operation: n / goodput, Limit: "arrivals"}
	est.Bytes = ends * math.Min(rate*n, goodput)
	if rate*n > goodput {
		est.Limit = "link"
	}
	return est
}
