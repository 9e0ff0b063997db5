package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// whatBounds says what the cells are limited by, of scenarios whose trials are
// throughput or single operations.
func whatBounds(r *Report) []Finding {
	return findings.SayBounds(findings.Bound(r.sharesOfCells()))
}

// sharesOfCells is what is known of each cell.
func (r *Report) sharesOfCells() []findings.Shares {
	var all []findings.Shares
	for _, c := range r.cells() {
		s := r.commonShares(c)
		for _, t := range r.validOf(c) {
			if v, ok := r.lineShareOf(t); ok {
				s.Line = append(s.Line, v)
			}
			if v, ok := r.busiestOf(t); ok {
				s.Busiest = append(s.Busiest, v)
			}
			if v, ok := r.machineOf(t); ok {
				s.Machine = append(s.Machine, v)
			}
		}
		r.tripsOf(c, &s)
		if c.overhead() != nil && !slices.ContainsFunc(lineShares(), func(key string) bool { _, ok := c.Metrics[key]; return ok }) {
			s.LineWords = "of the link's rate"
		}
		all = append(all, s)
	}
	return all
}

// commonShares are those that mean the same in every scenario.
func (r *Report) commonShares(c *Cell) findings.Shares {
	s := findings.Shares{System: c.System, Where: r.shape.where(c), Lost: c.lostShare()}
	if decided := c.Valid + c.Invalid + c.Failed; decided > 0 {
		n := 0
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Info == c && !t.Warmup && (slices.Contains(t.Invalid, record.ReasonGeneratorSaturated) || slices.Contains(t.Invalid, record.ReasonGeneratorLate)) {
				n++
			}
		}
		s.Saturated = float64(n) / float64(decided)
	}
	if m, ok := c.Metrics["io_pressure"]; ok {
		s.Storage = m.values
	}
	if m, ok := c.Metrics["others_busy"]; ok {
		s.Others = m.values
	}
	return s
}

// validOf are the valid trials of a cell.
func (r *Report) validOf(c *Cell) []*Trial {
	var all []*Trial
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Info == c && t.Valid() {
			all = append(all, t)
		}
	}
	return all
}

// lineShares are the metrics that say how near a load line a trial is: of throughput
// and of a time.
func lineShares() []string { return []string{"load_line_share", "line_share"} }

// lineShareOf is a trial's share of its load line; of a single operation without one
// that of the time in which the link as measured carries its bytes.
func (r *Report) lineShareOf(t *Trial) (float64, bool) {
	if t.Info.overhead() != nil && !t.Info.sequential() {
		return 0, false // its line is that of one operation alone, and several share the link
	}
	for _, key := range lineShares() {
		if v, ok := t.Metrics[key]; ok {
			return v, true
		}
	}
	took := t.Metrics["duration_p50"]
	l, ok := r.checks[t.ID]
	if t.Info.overhead() == nil || !t.Info.sequential() || !ok || !(l.WantRate > 0) || !(l.Rate > 0) || !(took > 0) || !carries(t.Info.overhead().Operation) {
		return 0, false
	}
	moved := t.Info.size()
	if v, ok := t.Metrics["wire_bytes"]; ok {
		moved = max(moved, v) // redundancy is sent, too
	}
	return moved * 8 / l.Rate / took, true
}

// carries reports whether an operation moves the object's bytes.
func carries(operation string) bool {
	return slices.Contains([]string{"put", "put-dir", "get", "range"}, operation)
}

// busiestOf is how many CPUs a system's busiest process kept busy; of a run that was
// recorded before that was measured all of them together.
func (r *Report) busiestOf(t *Trial) (float64, bool) {
	if v, ok := t.Metrics["busiest_cpu"]; ok {
		return v, true
	}
	per, ok := t.Metrics["system_cpu_per_gb"]
	rate, has := t.Metrics["throughput"]
	return per * rate / 1e9, ok && has
}

// machineOf is the share of the machine's CPU that was in use, likewise.
func (r *Report) machineOf(t *Trial) (float64, bool) {
	if v, ok := t.Metrics["box_cpu"]; ok {
		return v, true
	}
	cpus, _ := strconv.ParseFloat(r.EnvironmentOf("cpu.count"), 64)
	system, ok := t.Metrics["system_cpu_per_gb"]
	generator, has := t.Metrics["generator_cpu_per_gb"]
	rate, is := t.Metrics["throughput"]
	return (system + generator) * rate / 1e9 / cpus, ok && has && is && cpus > 0
}

// tripsOf fills how much of an operation's time its sequential round trips are: as
// fitted, or as HTTP needs them.
func (r *Report) tripsOf(c *Cell, s *findings.Shares) {
	trips := 0.0
	switch {
	case c.overhead() != nil:
		f := (*Fit)(nil)
		if c.sequential() {
			f = r.fitOf(c.task())
		}
		if f == nil || !f.Holds && !f.near() {
			return
		}
		if e := f.Rounds; e.Value > 0 && e.Lo.Known() && e.Hi.Known() && Num(c.size()) >= f.From && Num(c.size()) <= f.To {
			trips, s.FewerTrips, s.MoreTrips = float64(e.Value), max(1e-9, float64(e.Lo/e.Value)), float64(e.Hi/e.Value)
		}
	case c.plan.Retrieve != nil:
		r.waitsOf(c, s)
	}
	if trips == 0 {
		return
	}
	for _, t := range r.validOf(c) {
		l, ok := r.checks[t.ID]
		if took := t.Metrics["duration_p50"]; ok && took > 0 && l.RTT > 0 {
			s.RoundTrips = append(s.RoundTrips, trips*l.RTT/took)
		}
	}
}

// waitsOf fills how much of a request's time is round trips in which its connection
// cannot send: as HTTP and slow start need them. Connections that are open at once
// share the link, and wait least with an equal part of it, most with all of it.
func (r *Report) waitsOf(c *Cell, s *findings.Shares) {
	spec := c.plan.Retrieve
	size, fresh := float64(spec.Range), spec.Connections == "fresh"
	if size <= 0 {
		size = c.size()
	}
	s.FewerTrips, s.MoreTrips = 1, 1
	for _, t := range r.validOf(c) {
		l, ok := r.checks[t.ID]
		took := t.Metrics["duration_p50"]
		if !ok || !(took > 0) || !(l.RTT > 0) {
			continue
		}
		rate := math.Inf(1)
		if l.WantRate > 0 && l.Rate > 0 {
			rate = l.Rate / 8
		}
		least, most := math.Inf(1), 0.0
		for _, tls := range []bool{false, true} { // which is not recorded
			least = min(least, scenario.Waits(size, rate/float64(max(1, spec.Concurrency)), l.RTT, fresh, tls))
			most = max(most, scenario.Waits(size, rate, l.RTT, fresh, tls))
		}
		s.RoundTrips, s.MoreTrips = append(s.RoundTrips, least*l.RTT/took), max(s.MoreTrips, most/least)
	}
}

// swarmBounds says what limits swarms to which nothing is done.
func swarmBounds(r *Report) []Finding {
	var all []findings.Shares
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if !s.calm() {
			continue
		}
		b := r.commonShares(s.cell)
		b.Lost = 0 // the line is that of the last leecher: where one is missing there is none
		if r.passesNothingOn(s) {
			b.NotWaiting = "leechers of the raw baseline only take"
		}
		for k := range s.trials {
			t := &s.trials[k]
			if v, ok := t.Metrics["line_share"]; ok && b.NotWaiting == "" {
				b.Line = append(b.Line, v)
			}
			if v, ok := t.Metrics["box_cpu"]; ok {
				b.Machine = append(b.Machine, v)
			}
			if v, ok := s.seederLinkOf(t); ok && b.NotWaiting == "" {
				b.Link = append(b.Link, v)
			}
			if v, ok := t.busiestNode(); ok {
				b.Busiest = append(b.Busiest, v)
			}
		}
		all = append(all, b)
	}
	return findings.SayBounds(findings.Bound(all))
}

// busiestNode is how many CPUs the node kept busy that used most.
func (t *swarmTrial) busiestNode() (float64, bool) {
	most, known := 0.0, false
	for _, n := range t.nodes {
		if !math.IsNaN(n.cpu) {
			most, known = max(most, n.cpu), true
		}
	}
	took := t.end - t.release
	return most / took, known && took > 0
}

// seederLinkOf is how full the link of the seeder that sent most was until the last
// leecher was done, as a share of its rate, headers included.
func (s *Swarm) seederLinkOf(t *swarmTrial) (float64, bool) {
	rate := float64(s.cell.plan.Link.Rate)
	if up := float64(s.cell.plan.Disseminate.Up); up > 0 {
		rate = up
	}
	most := 0.0
	for _, n := range t.nodes {
		if n.seeder && n.sent > most { // false for NaN
			most = n.sent
		}
	}
	took := t.last() - t.release
	return most * 8 / took / rate, took > 0 && rate > 0 && most > 0
}

// bindSyncs says of each configuration what it is bound by.
func (r *Report) bindSyncs() {
	var all []findings.Shares
	var of []*Synced
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if !s.quiet() || s.fasterThanReplay() {
			continue // with faults there is no line, and a replay that was disturbed is none
		}
		b := r.commonShares(s.cell)
		b.Where, b.Lost, b.LineWords = r.syncName(s), 0, "of the links' line"
		for _, t := range s.trials {
			share, line := t.Metrics["line_share"], t.Metrics["line"]
			if !t.served() || !(share > 0) || !(line > 0) {
				continue
			}
			if v := t.Metrics["link_line"]; v > 0 {
				b.Line = append(b.Line, share*v/line)
			}
			if v := t.Metrics["replay"]; v > 0 {
				b.Work = append(b.Work, share*v/line)
			}
			if v, ok := t.Metrics["box_cpu"]; ok {
				b.Machine = append(b.Machine, v)
			}
			if v, took := t.Metrics["system_cpu"], t.Metrics["sync_time"]; v > 0 && took > 0 {
				b.Busiest = append(b.Busiest, v/took)
			}
		}
		all, of = append(all, b), append(of, s)
	}
	for i, b := range findings.Bound(all) {
		of[i].bounds = &b
		of[i].Bound = ""
		for _, l := range []struct {
			limit findings.Limit
			name  string
		}{{findings.Waiting, boundWaits}, {findings.Disk, boundDisk}, {findings.CPU, boundCPU}, {findings.Machine, boundMachine}, {findings.Work, boundCompute}, {findings.Link, boundLink}} {
			if slices.Contains(b.By, l.limit) {
				of[i].Bound = l.name
			}
		}
	}
}

// boundBy: what the time of the default and of the best is made of.
func boundBy(r *Report) []Finding {
	var all []findings.Bounds
	for i := range r.Syncs {
		if s := &r.Syncs[i]; s.bounds != nil && (s.Default || r.isBest(s)) {
			all = append(all, *s.bounds)
		}
	}
	return findings.SayBounds(all)
}
