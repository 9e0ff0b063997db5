package experiment

import "encoding/json"

// Experiment is one experiment file, decoded, checked and with all defaults
// filled in.
type Experiment struct {
	Scenario    string       `json:"scenario" required:"true" enum:"retrieve,overhead,upload,collect,disseminate,sync" doc:"The question to ask; the section of the same name has its settings."`
	Title       string       `json:"title,omitempty" doc:"Name of the run, at the head of the report."`
	Question    string       `json:"question,omitempty" doc:"What the experiment answers, in one sentence; the report repeats it."`
	Description string       `json:"description,omitempty" doc:"Anything a reader of the report should know."`
	Seed        uint64       `json:"seed" default:"1" doc:"Seeds contents, offsets, arrivals and the order of trials. The same seed gives the same experiment."`
	Systems     []SystemUse  `json:"systems" required:"true" doc:"The systems to measure, one at a time."`
	Baseline    string       `json:"baseline" doc:"System that the others are compared with, or none. Default: the first raw baseline."`
	Link        Link         `json:"link" doc:"The emulated link between client and system, measured before use. In disseminate and sync: the access link of every node; delay, jitter and loss are those between two nodes."`
	Data        Data         `json:"data" scenario:"retrieve,overhead,upload,disseminate" doc:"The objects: seeded content, or in upload also files of a directory. Leave it out for attached systems with their own objects."`
	Retrieve    *Retrieve    `json:"retrieve,omitempty" scenario:"retrieve" doc:"Fetch objects or ranges of them over HTTP."`
	Overhead    *Overhead    `json:"overhead,omitempty" scenario:"overhead" doc:"Time single operations, to see what an object costs before its bytes count."`
	Upload      *Upload      `json:"upload,omitempty" scenario:"upload" doc:"Store a whole data set, for as long as it takes."`
	Collect     *Collect     `json:"collect,omitempty" scenario:"collect" doc:"Only poll the systems."`
	Disseminate *Disseminate `json:"disseminate,omitempty" scenario:"disseminate" doc:"Spread content from some nodes of a swarm to all others."`
	Sync        *Sync        `json:"sync,omitempty" scenario:"sync" doc:"A fresh node gets a chain of blocks from its peers."`
	Repetitions Repetitions  `json:"repetitions" doc:"How often each cell is measured (upload and collect: once). Each repetition is a block: every cell once, in an order shuffled by the seed."`
	Warmup      Warmup       `json:"warmup" doc:"Blocks before the measured ones: recorded, never counted (upload and collect: none)."`
	Limits      Limits       `json:"limits" doc:"Deadlines and validity limits."`
	Exit        Exit         `json:"exit" doc:"When to stop the whole run early."`
	Allow       []string     `json:"allow,omitempty" enum:"write,spend" doc:"What may be done to attached systems besides reading: write objects (removed at the end where possible), spend money (Sia charges for reads, too)."`
	Where       []string     `json:"where,omitempty" split:"no" doc:"Conditions between factors; combinations that break one are left out."`
	Gates       []string     `json:"gates,omitempty" split:"no" doc:"Rules such as p90(ttfb) < 200ms, throughput within 20% of nginx, or for plimsoll compare no worse than BASE by 5%. Each passes, fails or is inconclusive."`
	Skip        []string     `json:"skip,omitempty" doc:"Preconditions not to check, by their names in plimsoll doctor."`

	Factors map[string]json.RawMessage `json:"factors,omitempty" yaml:"-"` // the levels of each key that was given as a list

	Dropped []string `json:"dropped,omitempty" yaml:"-"` // systems that --set left out, and that conditions still name
}

// SystemUse is one system of an experiment.
type SystemUse struct {
	_        struct{}          `short:"use"`
	Name     string            `json:"name" doc:"Name in tables and figures, unique. Default: the value of use."`
	Use      string            `json:"use" required:"true" doc:"Kind of system; plimsoll systems lists them."`
	Mode     string            `json:"mode" enum:"start,attach" doc:"Start it here, or attach to a running one. Default: start where possible."`
	With     map[string]string `json:"with,omitempty" doc:"Options of the system. A secret is the name of an environment variable."`
	Override map[string]string `json:"override,omitempty" doc:"Settings of the scenario for this system only, such as connections: fresh. Its cells are still compared with the baseline."`
	Baseline bool              `json:"baseline,omitempty" yaml:"-"`
	Alone    bool              `json:"alone,omitempty" yaml:"-"` // the nodes of its swarm pass nothing on that they fetched
}

// Link is what the emulated link between generator and system is to be.
type Link struct {
	Rate       BitRate  `json:"rate" default:"unlimited" zero:"unlimited" max:"1Tbit" label:"rate" doc:"Rate on the wire, Ethernet framing included."`
	Up         BitRate  `json:"up,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"up rate" doc:"Rate at which storage nodes send, if not link.rate."`
	Down       BitRate  `json:"down,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"down rate" doc:"Rate at which storage nodes receive, if not link.rate."`
	Delay      Duration `json:"delay" default:"0s" max:"10s" label:"delay" doc:"Delay one way: half the round trip."`
	Regions    Regions  `json:"regions,omitempty" default:"none" zero:"none" label:"regions" doc:"Round trips between regions in place of delay: ibm-cloud, or a list of your own. Needs the emulator tun."`
	Jitter     Duration `json:"jitter" default:"0s" max:"10s" label:"jitter" doc:"Variation of the delay, uniform, to either side; packets keep their order."`
	Loss       Fraction `json:"loss" default:"0%" max:"90%" label:"loss" doc:"Probability that a segment is lost, in each direction."`
	Queue      Bytes    `json:"queue" default:"auto" zero:"auto" label:"queue" doc:"Queue before the link. auto: the bandwidth-delay product, at least 64 full segments."`
	Congestion string   `json:"congestion" default:"cubic" doc:"TCP congestion control at both ends; the kernel must have it."`
	IPv6       bool     `json:"ipv6" default:"false" doc:"Use IPv6 on the link."`
	Tolerance  Fraction `json:"tolerance" default:"5%" doc:"How far the measured round trip and rate may be off before a trial is invalid; the round trip always by 1 ms, by the jitter, and by the time of a ping on a slow link."`
	Emulator   string   `json:"emulator" default:"auto" enum:"auto,netem,tun,none" doc:"netem: the kernel. tun: our own, in user space. auto: whichever works (a rate alone: the kernel's tbf). none: no emulation."`
}

// Data is what is stored in the systems, before they are measured or, by the
// scenario upload, as what is measured.
type Data struct {
	Objects int   `json:"objects" default:"1" min:"1" max:"1000000" doc:"Number of objects; one in disseminate. Not for a directory or a trace."`
	Size    Bytes `json:"size,omitempty" min:"1B" max:"1PiB" label:"size" doc:"Size of each object. A list makes one data set per size."`

	// What only the scenario upload takes; of the four, one at most, instead of size.
	Mix       Mix       `json:"mix,omitempty" scenario:"upload" doc:"Shares of the objects by size."`
	Spread    SizeRange `json:"spread,omitzero" scenario:"upload" doc:"Log-uniform sizes: as many objects from 1 kB to 10 kB as from 100 MB to 1 GB."`
	Directory string    `json:"directory,omitempty" scenario:"upload" doc:"Files of a directory tree, sorted; relative to the experiment file. Symbolic links and special files are left out."`
	Trace     string    `json:"trace,omitempty" scenario:"upload" doc:"File with one object per line: size, optionally a comma and a name."`

	Copies       int      `json:"copies" scenario:"upload" default:"1" min:"1" max:"100000000" doc:"Store the whole set so often, under names such as photo-00000001.jpg."`
	Compressible Fraction `json:"compressible" scenario:"upload" default:"0%" doc:"Share of each object that compresses to almost nothing. Not for a directory."`
	Duplicate    Fraction `json:"duplicate" scenario:"upload" default:"0%" doc:"Share of the objects that repeat an earlier one. Not for a directory or a trace."`
}

// Repetitions is how many measured blocks there are.
type Repetitions struct {
	_   struct{} `short:"max"`
	Max int      `json:"max" default:"6" min:"1" max:"10000" doc:"Measured blocks."`
}

// Warmup is what happens before anything counts.
type Warmup struct {
	_      struct{} `short:"trials"`
	Trials int      `json:"trials" default:"1" min:"0" max:"1000" doc:"Warm-up trials of each cell."`
}

// Limits are the deadlines of an experiment.
type Limits struct {
	Deadline Duration `json:"deadline" default:"10m" min:"1ms" doc:"Of one operation; in disseminate of a leecher, from its release; in sync of the fresh node. Operations of a burst on a shared link end together: allow time for all bytes."`
	Stall    Duration `json:"stall" default:"30s" min:"1ms" doc:"Time without a byte after which an operation has stalled; in disseminate, if nothing more comes (twice as long after a fault); in sync without a new block."`
	Start    Duration `json:"start" default:"1m" min:"1s" doc:"Time for a system to become ready."`
	Others   Fraction `json:"others" default:"25%" zero:"none" doc:"Share of the machine's CPU that other processes may use; above it a trial is invalid (box-busy). Can be changed afterwards."`
	Machine  Fraction `json:"machine" default:"85%" zero:"none" doc:"Share of a trial's time from which the machine line makes it invalid (machine-limited). Can be changed afterwards."`
	Trial    Duration `json:"trial" default:"auto" zero:"auto" doc:"Time for a whole trial. auto: from the estimate and the deadline; none in upload and collect."`
}

// Exit are the conditions that end a run before all its trials are done.
type Exit struct {
	MaxRuntime Duration `json:"max_runtime" default:"none" zero:"none" doc:"Time for the run."`
	MaxBytes   Bytes    `json:"max_bytes" default:"none" zero:"none" doc:"File bytes that the run may transfer."`
	MaxErrors  Fraction `json:"max_errors" default:"none" zero:"none" doc:"Share of a cell's finished operations in one trial that the server may fail."`

	// What a load test is also ended by.
	MaxSpend    string `json:"max_spend,omitempty" scenario:"upload,collect" form:"money" doc:"Money that a system may use in a trial, in its currency: what contracts cost less unspent funds, or spending by purpose; counted from poll to poll."`
	Floor       *Floor `json:"floor,omitempty" scenario:"upload,collect" doc:"End a test that makes less progress than this."`
	StorageFull bool   `json:"storage_full" scenario:"upload" default:"true" doc:"End a test when the system says that it is full."`
}

// Floor is the least progress of a load test: bytes that are stored (with their
// redundancy, where the system reports it) in every full window.
type Floor struct {
	Bytes  Bytes    `json:"bytes" default:"1.35GB" min:"1B" doc:"Bytes per window, at least."`
	Window Duration `json:"window" default:"1h" min:"1s" doc:"Length of the sliding window. Bytes are those on the servers, where the system reports them."`
}
