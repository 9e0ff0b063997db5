package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// BeyondSlack is how far a trial may be beyond its load line in addition to the tolerance of its
// link: round trip and rate are measured before the trial and not during it, and a token bucket
// passes an initial burst.
const BeyondSlack = 0.02

// leastTolerance is the tolerance of a link if the experiment sets none.
const leastTolerance = 0.05

// Beyond reports whether a share of a load line is larger than a link with this tolerance can
// explain.
func Beyond(share, tolerance float64) bool {
	return share > 1+cmp.Or(tolerance, leastTolerance)+BeyondSlack
}

// Judge determines which trials of a run are valid: it sets the reasons against each executed
// trial from its records, so that a finished run can be judged again with other limits. Recorded
// reasons stay, except those that are decided here and whose facts were recorded.
//
// One trial beyond its load line invalidates all trials of its cell, because only the slow ones
// would be left. Trials that were repeated do not have this effect.
func Judge(plan *experiment.Plan, trials []record.Trial) {
	cells := map[string]experiment.Cell{}
	for _, c := range plan.Cells {
		cells[c.ID] = c
	}
	latest := latestTrials(trials)
	beyond := map[string]bool{}
	for i := range trials {
		t := &trials[i]
		c, ok := cells[t.Cell]
		if !ok || t.State != record.Done {
			continue
		}
		t.Invalid = InvalidReasons(c, plan.Experiment.Limits, *t)
		if slices.Contains(t.Invalid, record.ReasonBeyondLine) && !t.Warmup && latest[cellBlock{t.Cell, t.Block}] == t.ID {
			beyond[t.Cell] = true
		}
	}
	for i := range trials {
		t := &trials[i]
		if beyond[t.Cell] && t.State == record.Done && !slices.Contains(t.Invalid, record.ReasonBeyondLine) {
			t.Invalid = append(t.Invalid, record.ReasonBeyondLine)
		}
	}
}

// InvalidReasons returns the reasons against one executed trial on its own; none: it is valid.
func InvalidReasons(c experiment.Cell, limits experiment.Limits, t record.Trial) []string {
	var why []string
	known := map[string]bool{}
	judge := func(reason string, against, isKnown bool) {
		known[reason] = isKnown
		if against && isKnown {
			why = append(why, reason)
		}
	}
	if c.Collect == nil { // polls of a system are not affected by a busy machine
		others, ok := t.Metrics["others_busy"]
		judge(record.ReasonBoxBusy, limits.Others > 0 && others > float64(limits.Others), limits.Others == 0 || ok &&
			others <= 1)
		machine := MachineShare(t)
		judge(record.ReasonMachineLimited, limits.Machine > 0 && machine >= float64(limits.Machine),
			limits.Machine == 0 || !math.IsNaN(machine))
	}
	shares := LineShares(c, t)
	judge(record.ReasonBeyondLine,
		slices.ContainsFunc(shares, func(s LineShare) bool { return Beyond(s.Share, float64(c.Link.Tolerance)) }),
		len(shares) > 0)
	recorded := slices.DeleteFunc(slices.Clone(t.Invalid), func(reason string) bool { return known[reason] })
	return append(recorded, why...)
}

// LineShare is the share of a load line that a trial reached in one metric.
type LineShare struct {
	Metric string // metric that is compared with the line
	Share  float64
}

// LineShares returns the shares by which a trial can be found to be beyond its load line, which is
// physically impossible.
func LineShares(c experiment.Cell, t record.Trial) []LineShare {
	var all []LineShare
	add := func(metric string, share float64) {
		if share > 0 && !math.IsInf(share, 0) { // false for NaN
			all = append(all, LineShare{metric, share})
		}
	}
	m := t.Metrics
	switch {
	case c.Retrieve != nil:
		add("throughput", m["load_line_share"])
		add("ttfb_p50", m["ttfb_line_share"])
		add("duration_p50", m["duration_line_share"])
	case c.Overhead != nil:
		add("duration_p50", m["line_share"])
		add("first_byte_p50", m["first_byte_line_share"])
	case c.Disseminate != nil:
		add("time_last", m["line_share"])
	case c.Sync != nil:
		if t.Outcomes[record.OK.String()] > 0 &&
			m["chain_time"] > 0 { // the line of the links; a replay is not a physical limit
			add("chain_time", m["link_line"]/m["chain_time"])
		}
	case c.Upload != nil:
		add("file_bandwidth", m["line_share"])
	}
	return all
}

// MachineShare returns the machine line of a trial as a share of its time: the CPU seconds used by
// everything on this machine divided by its cores, or those of the busiest thread of the link
// emulator if they were more. NaN if not recorded.
func MachineShare(t record.Trial) float64 {
	share, ok := t.Metrics["box_cpu"]
	if !ok {
		share = math.NaN()
	}
	if thread, has := t.Metrics["emulator_thread"]; has && (math.IsNaN(share) || thread > share) {
		return thread
	}
	return share
}
