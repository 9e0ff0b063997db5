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
			Help: "attempts to store an object that the system accepted, divided by those that came to an end of their own, in all sessions, as far as they were recorded; deadlines and cancelled ones are in neither, and fetches that check what was stored (upload.verify) are not counted"},
		{Key: "puts_ended", Name: "attempts that ended", Unit: "1", Better: record.Neither,
			Help: "the attempts that the success rate is a share of"},
		{Key: "objects", Name: "objects", Unit: "1", Better: record.Neither,
			Help: "objects of the data set"},
		{Key: "accepted", Name: "objects accepted", Unit: "1", Better: record.Higher,
			Help: "objects that the system has accepted, durable or not, in all sessions of the trial"},
		{Key: "durable", Name: "objects durable", Unit: "1", Better: record.Higher,
			Help: "objects seen at their full redundancy; only of systems that say so"},
		{Key: "not_durable", Name: "objects accepted, never durable", Unit: "1", Better: record.Lower,
			Help: "objects that were accepted and not seen at their full redundancy by the end, though upload.settle was waited for; only of systems that say so"},
		{Key: "adopted", Name: "objects adopted", Unit: "1", Better: record.Neither,
			Help: "objects among the accepted ones of which no put was seen to succeed: they were found stored, whole, when the fate of an attempt was looked into"},
		{Key: "failed", Name: "objects failed", Unit: "1", Better: record.Lower,
			Help: "objects given up because they failed upload.retries times after the first attempt"},
		{Key: "refused", Name: "objects refused", Unit: "1", Better: record.Lower,
			Help: "objects given up likewise whose last attempt the system refused before doing any work"},
		{Key: "unreadable", Name: "objects unreadable", Unit: "1", Better: record.Lower,
			Help: "objects whose own data could not be read, or changed while it was sent; no failure of the system"},
		{Key: "missing", Name: "objects found missing", Unit: "1", Better: record.Lower,
			Help: "times that an accepted object was not there, or not whole, when a later session compared its record with what the system lists; each was stored again"},
		{Key: "attempts_per_object", Name: "attempts per object", Unit: "1", Better: record.Lower,
			Help: "puts begun divided by the objects that a put was begun for"},
		{Key: "accept_p50", Name: "time to store an object, median", Unit: "s", Better: record.Lower,
			Help: "median over accepted objects of the time from the call of the last put to its return; adopted objects are left out"},
		{Key: "accept_p95", Name: "time to store an object, 95th percentile", Unit: "s", Better: record.Lower,
			Help: "likewise"},
		{Key: "durable_p50", Name: "time to full redundancy, median", Unit: "s", Better: record.Lower,
			Help: "median over objects seen at their full redundancy of the time from the call of the last put to that sight; where upload.slot is accepted, objects are looked at in turn, and the sight may be later than the fact"},
		{Key: "durable_p95", Name: "time to full redundancy, 95th percentile", Unit: "s", Better: record.Lower,
			Help: "likewise"},
		{Key: "accepted_bytes", Name: "file bytes accepted", Unit: "B", Better: record.Higher,
			Help: "sum of the sizes of the accepted objects"},
		{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher,
			Help: "file bytes accepted divided by the time from the first put to the last acceptance, both of all sessions; what lies between two sessions is in it as far as the trial's clock counts it"},
		{Key: "bandwidth_line", Name: "load line of the bandwidth", Unit: "B/s", Better: record.Neither,
			Help: "payload bytes per second that the link between the client and the system carried when it was measured before the trial; emulated links with a rate only"},
		{Key: "line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "file bytes of objects at their full redundancy (where the system does not say when they are: of accepted objects), adopted ones left out, divided by the time from the first put to the last of them and by the load line; without copies, duplicates and data.directory, and in one session where redundancy is waited for"},
		{Key: "wait_line", Name: "round trip of the link", Unit: "s", Better: record.Neither,
			Help: "as it was measured then; emulated links with a delay only"},
		{Key: "file_rate", Name: "objects per second", Unit: "1/s", Better: record.Higher,
			Help: "objects accepted divided by the same time"},
		{Key: "expansion", Name: "expansion", Unit: "×", Better: record.Lower,
			Help: "absolute bytes gained divided by the file bytes that reached the servers by the last poll, not those that wait in buffers: padding times redundancy"},
		{Key: "storage_efficiency", Name: "storage efficiency", Unit: "ratio", Better: record.Higher,
			Help: "these file bytes divided by the absolute bytes gained; the inverse of the expansion"},
		{Key: "absolute_per_file", Name: "absolute bytes per file", Unit: "B", Better: record.Lower,
			Help: "absolute bytes gained divided by the objects that reached the servers by the last poll; of those accepted, the share of their bytes that did"},
		{Key: "verified", Name: "objects verified", Unit: "1", Better: record.Neither,
			Help: "objects fetched at the end whose every byte was right"},
		{Key: "verify_failed", Name: "objects not verified", Unit: "1", Better: record.Lower,
			Help: "objects that were to be fetched and compared at the end, and could not be fetched, or were other bytes"},
	}, slices.Concat(pollMetrics(), []record.Metric{
		{Key: "generator_cpu_per_op", Name: "generator's CPU per attempt", Unit: "s", Better: record.Neither,
			Help: "CPU seconds of the plimsoll process in the last session, divided by its attempts: it makes and hashes the content, speaks the protocol, polls, records, and observes"},
		{Key: "generator_rss_peak", Name: "generator's memory, peak", Unit: "B", Better: record.Lower,
			Help: "highest resident set size of the plimsoll process so far"},
	}, systemMetrics(), []record.Metric{
		scenario.OthersBusy(),
		scenario.BoxCPU(), scenario.EmulatorThread(), scenario.BusiestCPU(), scenario.IOPressure(),
	})...)
}

// systemMetrics are those of the system's processes.
func systemMetrics() []record.Metric {
	return []record.Metric{
		{Key: "system_cpu", Name: "system's CPU", Unit: "s", Better: record.Lower,
			Help: "CPU seconds of all the system's processes during the last session"},
		{Key: "system_rss_peak", Name: "system's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest sum, over the samples of the last session, of the resident set sizes of the system's processes; memory they share counts once per process"},
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
			return []system.Problem{{What: "the scenario upload stores objects, and may not write to this system", Hint: "say allow: [write] if it may"}}
		}
	}
	if !slices.Contains(can, "put") {
		return []system.Problem{{What: "objects cannot be stored in it, which the scenario upload needs", Hint: "take it out of the experiment"}}
	}
	for _, c := range cells {
		if c.Upload.Slot == "durable" && !slices.Contains(can, "durable") {
			return []system.Problem{{
				What: fmt.Sprintf("it does not say when an object is durable, which upload.slot: durable needs (it can: %v)", can),
				Hint: "say slot: auto",
			}}
		}
	}
	return nil
}
