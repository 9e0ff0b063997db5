package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Experiment is a decoded and checked experiment file, with all defaults filled in.
type Experiment struct {
	// The question to ask; the section of the same name has its settings.
	Scenario string `json:"scenario" required:"true" enum:"retrieve,overhead,upload,collect,disseminate,sync"`
	// Name of the run, at the head of the report.
	Title string `json:"title,omitempty"`
	// What the experiment answers, in one sentence; the report repeats it.
	Question string `json:"question,omitempty"`
	// Anything a reader of the report should know.
	Description string `json:"description,omitempty"`
	// Seeds contents, offsets, arrivals and the order of trials. The same seed gives the same experiment.
	Seed uint64 `json:"seed" default:"1"`
	// The systems to measure, one at a time.
	Systems []SystemUse `json:"systems" required:"true"`
	// System that the others are compared with, or none. Default: the first raw baseline.
	Baseline string `json:"baseline"`
	// The emulated link between client and system, measured before use. In disseminate and sync: the access link of
	// every node; delay, jitter and loss are those between two nodes.
	Link Link `json:"link"`
	// The objects: seeded content, or in upload also files of a directory. Leave it out for attached systems with their
	// own objects.
	Data Data `json:"data" scenario:"retrieve,overhead,upload,disseminate" without:"retrieve.arrivals.log"`
	// Fetch objects or ranges of them over HTTP.
	Retrieve *Retrieve `json:"retrieve,omitempty" scenario:"retrieve"`
	// Time single operations, to see what an object costs apart from its size.
	Overhead *Overhead `json:"overhead,omitempty" scenario:"overhead"`
	// Store a whole data set, for as long as it takes.
	Upload *Upload `json:"upload,omitempty" scenario:"upload"`
	// Only poll the systems.
	Collect *Collect `json:"collect,omitempty" scenario:"collect"`
	// Spread content from some nodes of a swarm to all others.
	Disseminate *Disseminate `json:"disseminate,omitempty" scenario:"disseminate"`
	// A fresh node gets a chain of blocks from its peers.
	Sync *Sync `json:"sync,omitempty" scenario:"sync"`
	// How often each cell is measured (upload and collect: once). Each repetition is a block: every cell once, in
	// an order shuffled by the seed.
	Repetitions Repetitions `json:"repetitions"`
	// Blocks before the measured ones: recorded, never counted (upload and collect: none).
	Warmup Warmup `json:"warmup"`
	// Deadlines and validity limits.
	Limits Limits `json:"limits"`
	// When to stop the whole run early.
	Exit Exit `json:"exit"`
	// What may be done to attached systems besides reading: write objects (removed at the end where possible; those of
	// load tests
	// stay unless upload.after: remove), spend money (Sia charges for reads, too).
	Allow []string `json:"allow,omitempty" enum:"write,spend"`
	// Conditions between factors; combinations that break one are left out.
	Where []string `json:"where,omitempty" split:"no"`
	// Rules such as p90(ttfb) < 200ms, throughput within 20% of nginx, or for plimsoll compare no worse than BASE by
	// 5%.
	// Each passes, fails or is inconclusive.
	Gates []string `json:"gates,omitempty" split:"no"`
	// Preconditions not to check, by their names in plimsoll doctor.
	Skip []string `json:"skip,omitempty"`

	// the levels of each key that was given as a list
	Factors map[string]json.RawMessage `json:"factors,omitempty" yaml:"-"`

	Dropped []string `json:"dropped,omitempty" yaml:"-"` // systems that --set removed and that conditions still name
}

// LoadTest reports whether the experiment has a single trial that takes as long as necessary.
func (e *Experiment) LoadTest() bool { return e.Scenario == "upload" || e.Scenario == "collect" }

// Allows reports whether an operation on attached systems is allowed: write or spend.
func (e *Experiment) Allows(what string) bool { return slices.Contains(e.Allow, what) }

// section returns the struct of the chosen scenario's section, or an invalid value.
func (e *Experiment) section() reflect.Value {
	return reflect.Indirect(cellField(reflect.ValueOf(e), e.Scenario))
}

// SystemNames returns the names of the systems, in order.
func (e *Experiment) SystemNames() []string {
	return each(e.Systems, func(s SystemUse) string { return s.Name })
}

// System returns the system with that name, which must be the system of a cell.
func (e *Experiment) System(name string) SystemUse {
	return *first(e.Systems, func(s *SystemUse) bool { return s.Name == name })
}

// SystemUse is one system of an experiment.
type SystemUse struct {
	_ struct{} `short:"use"`
	// Name in tables and figures, unique. Default: the value of use.
	Name string `json:"name"`
	// Kind of system; plimsoll systems lists them.
	Use string `json:"use" required:"true"`
	// Start it here, or attach to a running one. Default: start where possible.
	Mode string `json:"mode" enum:"start,attach"`
	// Options of the system. A secret is the name of an environment variable.
	With map[string]string `json:"with,omitempty"`
	// Settings of the scenario for this system only, such as connections: fresh. Its cells are still compared with the
	// baseline.
	Override map[string]string `json:"override,omitempty"`
	Baseline bool              `json:"baseline,omitempty" yaml:"-"`
	// the nodes of its swarm do not pass on what they fetched
	SeedersOnly bool `json:"alone,omitempty" yaml:"-"`
}

// Attached reports whether the system is already running, and is not started by Plimsoll.
func (u SystemUse) Attached() bool { return u.Mode == "attach" }

// Data is what is stored in the systems before they are measured or, in the scenario upload, as the
// measured work.
type Data struct {
	// Number of objects; one in disseminate.
	Objects int `json:"objects" default:"1" min:"1" max:"1000000" scenario:"retrieve,overhead,upload" without:"data.directory,data.trace"`
	// Size of each object. A list makes one data set per size.
	Size Bytes `json:"size,omitempty" min:"1B" max:"1PiB" label:"size"`

	// Only for the scenario upload; at most one of the first three, instead of size.

	// Shares of the objects by size. A share from 1kB to 1GB has as many objects from 1 kB to 10 kB as from 100 MB to
	// 1 GB.
	Mix Mix `json:"mix,omitempty" scenario:"upload" without:"data.size"`
	// Files of a directory tree, sorted; relative to the experiment file. Symbolic links and special files are left
	// out.
	Directory string `json:"directory,omitempty" scenario:"upload" without:"data.size,data.mix"`
	// File with one object per line: size, optionally a comma and a name.
	Trace string `json:"trace,omitempty" scenario:"upload" without:"data.size,data.mix,data.directory"`

	// Store the whole set so often, under names such as photo-00000001.jpg.
	Copies int `json:"copies" scenario:"upload" default:"1" min:"1" max:"100000000"`
}

// SizeShare is a part of a mix of sizes.
type SizeShare struct {
	// Share of the objects.
	Share Fraction `json:"share" required:"true" min:"0.0000001%"`
	// Size, if all are equal.
	Size Bytes `json:"size,omitempty" one:"true" min:"1B" max:"1PiB"`
	// Smallest of a log-uniform range.
	From Bytes `json:"from,omitempty" one:"true" needs:"to" min:"1B" max:"1PiB"`
	// Largest.
	To Bytes `json:"to,omitempty" needs:"from" min:"1B" max:"1PiB"`
}

// Range returns the smallest and the largest size; they are equal if all sizes are.
func (m SizeShare) Range() (from, to Bytes) {
	return cmp.Or(m.Size, m.From), cmp.Or(m.Size, m.To)
}

func (m *SizeShare) check() error {
	if from, to := m.Range(); to < from {
		return mistake(fmt.Sprintf("did you mean `from: %s, to: %s`?", to, from), "the range ends before it begins")
	}
	return nil
}

func (m SizeShare) String() string {
	if m.Size > 0 {
		return m.Share.String() + " " + m.Size.String()
	}
	return m.Share.String() + " " + m.From.String() + ".." + m.To.String()
}

// Mix lists shares of the objects with their sizes.
type Mix []SizeShare

func (m Mix) String() string { return strings.ReplaceAll(joined(m), ";", ",") }

func (m *Mix) check() error {
	sum := 0.0
	for _, part := range *m {
		sum += 100 * float64(part.Share)
	}
	// Shares like 33.3% are meant to be thirds.
	if math.Abs(sum-100) > 0.1+1e-9 {
		return mistake("let them add up to 100%", "the shares add up to %.4g%%", sum)
	}
	return nil
}

// maxTotal is the maximum size of a data set in bytes, copies included: 4 EiB, so that sums of two
// stay within 64 bits.
const maxTotal = 1 << 62

// logUniformMean returns the mean of log-uniform sizes.
func logUniformMean(from, to Bytes) float64 {
	if from == to {
		return float64(from)
	}
	a, b := float64(from), float64(to)
	return (b - a) / math.Log(b/a)
}

// Key returns a text that is equal for equal data sets.
func (d Data) Key() string { return fmt.Sprintf("%+v", d) }

// Known reports whether the sizes follow from the experiment alone; those of a directory or a trace
// are known once it is read.
func (d Data) Known() bool { return d.Directory == "" && d.Trace == "" }

// Given reports whether there is a data set.
func (d Data) Given() bool { return d.Source() != "" }

// Source returns the key that determines the sizes: "size", "mix", "directory" or "trace"; empty if
// there is none.
func (d Data) Source() string {
	for _, key := range []string{"mix", "directory", "trace", "size"} {
		if !cellField(reflect.ValueOf(d), key).IsZero() {
			return key
		}
	}
	return ""
}

// Total returns the number of objects, copies included, and of their bytes (the mean for mixes);
// 0 if the sizes are not [Data.Known].
func (d Data) Total() (objects, bytes float64) {
	mean := float64(d.Size)
	switch d.Source() {
	case "mix":
		mean = 0
		sum := 0.0
		for _, m := range d.Mix {
			mean += float64(m.Share) * logUniformMean(m.Range())
			sum += float64(m.Share)
		}
		mean /= sum
	case "directory", "trace", "":
		return 0, 0
	}
	objects = float64(d.Objects) * float64(max(1, d.Copies))
	return objects, objects * mean
}

// Repetitions is the number of measured blocks.
type Repetitions struct {
	_ struct{} `short:"max"`
	// Measured blocks.
	Max int `json:"max" default:"6" min:"1" max:"10000"`
}

// Warmup is the number of trials before the measured blocks.
type Warmup struct {
	_ struct{} `short:"trials"`
	// Warm-up trials of each cell.
	Trials int `json:"trials" default:"1" min:"0" max:"1000"`
}

// Limits are the deadlines of an experiment.
type Limits struct {
	// Of one operation; in disseminate of a leecher, from its release; in sync of the fresh node. Operations of a
	// burst on a shared link end together: allow time for all bytes.
	Deadline Duration `json:"deadline" default:"10m" min:"1ms" below:"limits.trial"`
	// Time without a byte after which an operation has stalled; in disseminate, if nothing more comes (twice as
	// long after a fault); in sync without a new block.
	Stall Duration `json:"stall" default:"30s" min:"1ms" below:"limits.deadline"`
	// Time for a system to become ready.
	Start Duration `json:"start" default:"1m" min:"1s"`
	// Share of the machine's CPU that other processes may use; above it a trial is invalid (box-busy). Can be changed
	// afterwards.
	Others Fraction `json:"others" default:"25%" zero:"none"`
	// Share of a trial's time from which the machine line makes it invalid (machine-limited). Can be changed
	// afterwards.
	Machine Fraction `json:"machine" default:"85%" zero:"none"`
	// Time for a whole trial. auto: from the estimate and the deadline; none in upload and collect.
	Trial Duration `json:"trial" default:"auto" zero:"auto" below:"exit.max_runtime"`
}

// Exit holds the conditions that end a run before all its trials are done.
type Exit struct {
	// Time for the run.
	MaxRuntime Duration `json:"max_runtime" default:"none" zero:"none"`
	// File bytes that the run may transfer.
	MaxBytes Bytes `json:"max_bytes" default:"none" zero:"none"`
	// Share of a cell's finished operations in one trial that the server may fail.
	MaxErrors Fraction `json:"max_errors" default:"none" zero:"none"`

	// Further conditions that end a load test.

	// Money that a system may use in a trial, in its currency: what contracts cost less unspent funds; counted from
	// poll to poll.
	MaxSpend Money `json:"max_spend,omitempty" scenario:"upload,collect"`
	// End a test that makes less progress than this.
	Floor *Floor `json:"floor,omitempty" scenario:"upload,collect"`
	// End a test when the system says that it is full.
	StorageFull bool `json:"storage_full" scenario:"upload" default:"true"`
}

// Floor is the least progress of a load test: the bytes stored in every full window (with their
// redundancy, if the system reports it).
type Floor struct {
	// Bytes per window, at least.
	Bytes Bytes `json:"bytes" default:"1.35GB" min:"1B"`
	// Length of the sliding window. Bytes are those on the servers, where the system reports them.
	Window Duration `json:"window" default:"1h" min:"1s"`
}
