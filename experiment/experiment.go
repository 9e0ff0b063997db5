package experiment

import "encoding/json"

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
	// Time single operations, to see what an object costs before its bytes count.
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

// Link describes the emulated link between generator and system.
type Link struct {
	// Rate on the wire, Ethernet framing included.
	Rate BitRate `json:"rate" default:"unlimited" zero:"unlimited" max:"1Tbit" label:"rate"`
	// Rate at which storage nodes send, if not link.rate.
	Up BitRate `json:"up,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"up rate"`
	// Rate at which storage nodes receive, if not link.rate.
	Down BitRate `json:"down,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"down rate"`
	// Delay one way: half the round trip.
	Delay Duration `json:"delay" default:"0s" max:"10s" label:"delay"`
	// Round trips between regions in place of delay: ibm-cloud, or a list of your own. Needs the emulator user.
	Regions Regions `json:"regions,omitempty" default:"none" zero:"none" label:"regions"`
	// Variation of the delay, uniform, to either side; packets keep their order.
	Jitter Duration `json:"jitter" default:"0s" max:"10s" label:"jitter"`
	// Probability that a segment is lost, in each direction. The estimate of plan ignores it.
	Loss Fraction `json:"loss" default:"0%" max:"90%" label:"loss"`
	// Queue before the link. auto: the bandwidth-delay product, at least 64 full segments.
	Queue Bytes `json:"queue" default:"auto" zero:"auto" label:"queue"`
	// TCP congestion control at both ends; the kernel must have it.
	Congestion string `json:"congestion" default:"cubic"`
	// Use IPv6 on the link.
	IPv6 bool `json:"ipv6" default:"false"`
	// How far the measured round trip and rate may be off before a trial is invalid; the round trip always by 1 ms,
	// by the jitter, and by the time of a ping on a slow link.
	Tolerance Fraction `json:"tolerance" default:"5%"`
	// netem: the kernel. user: our own, in user space. auto: whichever works (a rate alone: the kernel's tbf). none: no
	// emulation.
	Emulator string `json:"emulator" default:"auto" enum:"auto,netem,user,none"`
}

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
