package upload

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario asks what it takes to store a whole data set, and whether that changes
// the more there is. It follows the load test of Sia of 2018: so many objects
// under way at once, for weeks, with the system polled beside it.
//
// One trial is one load test. Before each put the journal says so, and after it
// what came of it, so that a later session knows of every object that it is
// done, not begun, or in doubt; see restore.
type Scenario struct{}

var _ scenario.Continuer = Scenario{}

func (Scenario) Name() string { return "upload" }

// Continues implements Continuer: all trials do.
func (Scenario) Continues(experiment.Cell) bool { return true }

// Metrics of a trial.
func (Scenario) Metrics() []record.Metric {
	return append([]record.Metric{
		{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher,
			Help: "accepted attempts over accepted and failed ones, all sessions; deadline, cancelled and " +
				"verification count in neither"},
		{Key: "puts_ended", Name: "attempts that ended", Unit: "1", Better: record.Neither,
			Help: "attempts that the success rate counts"},
		{Key: "objects", Name: "objects", Unit: "1", Better: record.Neither,
			Help: "objects of the data set"},
		{Key: "accepted", Name: "objects accepted", Unit: "1", Better: record.Higher,
			Help: "objects that the system has accepted, durable or not"},
		{Key: "durable", Name: "objects durable", Unit: "1", Better: record.Higher,
			Help: "objects seen at full redundancy, where the system reports it"},
		{Key: "not_durable", Name: "objects accepted, never durable", Unit: "1", Better: record.Lower,
			Help: "accepted objects not at full redundancy at the end, after upload.settle; where reported"},
		{Key: "adopted", Name: "objects adopted", Unit: "1", Better: record.Neither,
			Help: "accepted objects whose put was not seen to succeed, but were found stored whole"},
		{Key: "failed", Name: "objects failed", Unit: "1", Better: record.Lower,
			Help: "objects given up after upload.retries retries"},
		{Key: "refused", Name: "objects refused", Unit: "1", Better: record.Lower,
			Help: "likewise, when the system refused the last attempt without doing work"},
		{Key: "unreadable", Name: "objects unreadable", Unit: "1", Better: record.Lower,
			Help: "objects whose own data could not be read or changed meanwhile; no failure of the system"},
		{Key: "missing", Name: "objects found missing", Unit: "1", Better: record.Lower,
			Help: "accepted objects that a later session found missing or incomplete; stored again"},
		{Key: "attempts_per_object", Name: "attempts per object", Unit: "1", Better: record.Lower,
			Help: "puts begun per object tried"},
		{Key: "accept_p50", Name: "time to store an object, median", Unit: "s", Better: record.Lower,
			Help: "from the call of the last put to its return; adopted objects left out"},
		{Key: "accept_p95", Name: "time to store an object, 95th percentile", Unit: "s", Better: record.Lower,
			Help: "likewise"},
		{Key: "durable_p50", Name: "time to full redundancy, median", Unit: "s", Better: record.Lower,
			Help: "from the call of the last put until seen at full redundancy"},
		{Key: "durable_p95", Name: "time to full redundancy, 95th percentile", Unit: "s", Better: record.Lower,
			Help: "likewise"},
		{Key: "accepted_bytes", Name: "file bytes accepted", Unit: "B", Better: record.Higher,
			Help: "sizes of the accepted objects"},
		{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "file bytes accepted per second from the first put to the last acceptance, pauses between " +
				"sessions included"},
		{Key: "bandwidth_line", Name: "load line of the bandwidth", Unit: "B/s", Better: record.Neither,
			Help: "payload rate of the link, measured before the trial; emulated links with a rate"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "durable file bytes (else accepted ones) per second over the load line; not with copies or a " +
				"directory"},
		{Key: "wait_line", Name: "round trip of the link", Unit: "s", Better: record.Neither,
			Help: "measured before the trial; emulated links with a delay"},
		{Key: "file_rate", Name: "objects per second", Unit: "1/s", Better: record.Higher,
			Help: "objects accepted per second, likewise"},
		{Key: "expansion", Name: "expansion", Unit: "×", Better: record.Lower,
			Help: "absolute bytes over the file bytes on the servers, without those in buffers: padding times " +
				"redundancy"},
		ofServers[0], ofServers[1],
		{Key: "verified", Name: "objects verified", Unit: "1", Better: record.Neither,
			Help: "objects fetched at the end with every byte right"},
		{Key: "verify_failed", Name: "objects not verified", Unit: "1", Better: record.Lower,
			Help: "objects that could not be fetched at the end, or had other bytes"},
	}, slices.Concat(pollMetrics(), []record.Metric{
		{Key: "generator_cpu_per_op", Name: "generator's CPU per attempt", Unit: "s", Better: record.Neither,
			Help: "CPU seconds of this program in the last session per attempt"},
		{Key: "generator_rss_peak", Name: "generator's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest resident set of this program so far"},
	}, systemMetrics(), []record.Metric{
		scenario.OthersBusy(),
		scenario.BoxCPU(), scenario.EmulatorThread(), scenario.BusiestCPU(), scenario.IOPressure(),
	})...)
}

// systemMetrics are those of the system's processes.
func systemMetrics() []record.Metric {
	return []record.Metric{
		{Key: "system_cpu", Name: "system's CPU", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of the system's processes in the last session"},
		{Key: "system_rss_peak", Name: "system's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest sum of the resident sets of the system's processes in the last session"},
	}
}

// Problems implements Scenario.
func (Scenario) Problems(_ experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	return unfit(info.Can, cells)
}

// unfit says why cells cannot be executed on a system with these abilities.
func unfit(can []string, cells []experiment.Cell) []system.Problem {
	for _, c := range cells {
		if c.Data.Objects == 0 && c.Data.Directory == "" && c.Data.Trace == "" {
			return []system.Problem{{What: "the scenario upload stores objects, and may not write to this system",
				Hint: "say allow: [write] if it may"}}
		}
	}
	if !slices.Contains(can, "put") {
		return []system.Problem{{What: "objects cannot be stored in it, which the scenario upload needs",
			Hint: "take it out of the experiment"}}
	}
	for _, c := range cells {
		if c.Upload.Slot == "durable" && !slices.Contains(can, "durable") {
			return []system.Problem{{
				What: fmt.Sprintf("it does not say when an object is durable, which upload.slot: durable needs (it "+
					"can: %v)", can),
				Hint: "say slot: auto",
			}}
		}
	}
	return nil
}
