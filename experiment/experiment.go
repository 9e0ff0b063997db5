package experiment

import "encoding/json"

// Experiment is one experiment file, decoded, checked and with all defaults
// filled in.
type Experiment struct {
	Scenario    string       `json:"scenario" required:"true" enum:"retrieve,overhead,upload,collect,disseminate,sync" doc:"The question to ask of the systems. The section of the same name holds its settings."`
	Title       string       `json:"title,omitempty" doc:"A short name for the run, shown at the head of the report."`
	Question    string       `json:"question,omitempty" doc:"What the experiment shall answer, in one sentence; the report repeats it beside the answer."`
	Description string       `json:"description,omitempty" doc:"Anything a reader of the report should know: the study followed, what was changed and why."`
	Seed        uint64       `json:"seed" default:"1" doc:"Seeds everything random: contents, offsets, arrivals, the order of trials. The same seed gives the same experiment."`
	Systems     []SystemUse  `json:"systems" required:"true" doc:"The systems to measure, each in turn, never two at once."`
	Baseline    string       `json:"baseline" doc:"Name of the system that the others are divided by, or none. Default: the first system that is a raw baseline."`
	Link        Link         `json:"link" doc:"The emulated link between the load generator and each system, measured before it is used. In the scenarios disseminate and sync, the access link of every node, in both directions; the delay, its jitter and the loss are those from one node to another."`
	Data        Data         `json:"data" scenario:"retrieve,overhead,upload,disseminate" doc:"The objects stored in the systems: seeded content that can be verified byte by byte or, in the scenario upload, files of a directory. Absent for attached systems that have their own objects."`
	Retrieve    *Retrieve    `json:"retrieve,omitempty" scenario:"retrieve" doc:"Settings of the scenario retrieve: fetch objects or ranges of them over HTTP."`
	Overhead    *Overhead    `json:"overhead,omitempty" scenario:"overhead" doc:"Settings of the scenario overhead: one operation after the other, to see what each costs before its bytes count."`
	Upload      *Upload      `json:"upload,omitempty" scenario:"upload" doc:"Settings of the scenario upload: store a whole data set, for as long as it takes, and see what it costs and when it slows down."`
	Collect     *Collect     `json:"collect,omitempty" scenario:"collect" doc:"Settings of the scenario collect: only ask the systems how they are, again and again."`
	Disseminate *Disseminate `json:"disseminate,omitempty" scenario:"disseminate" doc:"Settings of the scenario disseminate: spread content from some nodes of a swarm to all others."`
	Sync        *Sync        `json:"sync,omitempty" scenario:"sync" doc:"Settings of the scenario sync: a fresh node gets a chain of blocks from its peers."`
	Repetitions Repetitions  `json:"repetitions" doc:"How often each cell is measured; once in the scenarios upload and collect, where nothing else is said. Each repetition is a block that executes every cell once, in an order shuffled by the seed."`
	Warmup      Warmup       `json:"warmup" doc:"Blocks executed before the measured ones: recorded, never part of a statistic. None in the scenarios upload and collect, where nothing else is said."`
	Limits      Limits       `json:"limits" doc:"Deadlines. Nothing waits for ever."`
	Exit        Exit         `json:"exit" doc:"When to stop the whole run early, with what has been measured so far."`
	Allow       []string     `json:"allow,omitempty" enum:"write,spend" doc:"What may be done to attached systems beyond reading what costs nothing: write objects (removed at the end where the system can; what stays is said), spend money (systems that pay for what they do, such as Sia, pay for reading, too)."`
	Where       []string     `json:"where,omitempty" split:"no" doc:"Conditions between factors. A combination for which one of them is false is left out of the plan."`
	Gates       []string     `json:"gates,omitempty" split:"no" doc:"Rules that the run is held to, such as p90(ttfb) < 200ms, success >= 99.9%, throughput within 20% of nginx: each passes, fails or is inconclusive, as the report and the exit status say. Rules against BASE, such as no worse than BASE by 5%, are decided by plimsoll compare."`
	Skip        []string     `json:"skip,omitempty" doc:"Preconditions not to be checked, by their names in plimsoll doctor."`

	Factors map[string]json.RawMessage `json:"factors,omitempty" yaml:"-"` // the levels of each key that was given as a list

	Dropped []string `json:"dropped,omitempty" yaml:"-"` // systems that --set left out, and that conditions still name
}

// SystemUse is one system of an experiment.
type SystemUse struct {
	_        struct{}          `short:"use"`
	Name     string            `json:"name" doc:"Name in tables and figures, unique in the file. Default: the value of use."`
	Use      string            `json:"use" required:"true" doc:"Which kind of system: a name from the list of systems below."`
	Mode     string            `json:"mode" enum:"start,attach" doc:"Start it here, or attach to one that runs. Default: start where the system can be started."`
	With     map[string]string `json:"with,omitempty" doc:"Options of the system; see the list of systems below. A secret is given as the name of an environment variable."`
	Override map[string]string `json:"override,omitempty" doc:"Settings of the scenario's section that differ for this system only, such as connections: fresh. The cells are still compared with the baseline's."`
	Baseline bool              `json:"baseline,omitempty" yaml:"-"`
	Alone    bool              `json:"alone,omitempty" yaml:"-"` // the nodes of its swarm pass nothing on that they fetched
}

// Link is what the emulated link between generator and system is to be.
type Link struct {
	Rate       BitRate  `json:"rate" default:"unlimited" zero:"unlimited" max:"1Tbit" label:"rate" doc:"Rate on the wire, Ethernet framing included, in bits per second with decimal units."`
	Up         BitRate  `json:"up,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"up rate" doc:"Rate at which storage nodes send, where it differs from link.rate."`
	Down       BitRate  `json:"down,omitempty" default:"rate" zero:"rate" max:"1Tbit" label:"down rate" doc:"Rate at which storage nodes receive, where it differs from link.rate."`
	Delay      Duration `json:"delay" default:"0s" max:"10s" label:"delay" doc:"Delay one way; the round trip takes twice as long."`
	Regions    Regions  `json:"regions,omitempty" default:"none" zero:"none" label:"regions" doc:"Round trips between the regions over which hosts are spread in turn, in place of delay: the name of a published table (ibm-cloud), or a list of your own. Needs the emulator tun."`
	Jitter     Duration `json:"jitter" default:"0s" max:"10s" label:"jitter" doc:"Variation of the delay, uniform and to either side; the order of packets is kept."`
	Loss       Fraction `json:"loss" default:"0%" max:"90%" label:"loss" doc:"Probability that a segment on the wire is lost, in each direction."`
	Queue      Bytes    `json:"queue" default:"auto" zero:"auto" label:"queue" doc:"Size of the queue before the link. auto: the bandwidth-delay product of the round trip, at least 64 full segments. One segment always fits, however small the queue."`
	Congestion string   `json:"congestion" default:"cubic" doc:"TCP congestion control at both ends; the kernel must have it."`
	IPv6       bool     `json:"ipv6" default:"false" doc:"Use IPv6 addresses on the link instead of IPv4."`
	Tolerance  Fraction `json:"tolerance" default:"5%" doc:"How far the measured round trip and rate may be off before a trial counts as invalid. A round trip may always be off by 1 ms, which a busy machine needs, by the jitter asked for, and by what a ping itself takes on a slow link."`
	Emulator   string   `json:"emulator" default:"auto" enum:"auto,netem,tun,none" doc:"What emulates the link: the kernel's netem, the user-space emulator tun, whichever there is (auto; a rate alone is then shaped by the kernel, tbf), or nothing."`
}

// Data is what is stored in the systems, before they are measured or, by the
// scenario upload, as what is measured.
type Data struct {
	Objects int   `json:"objects" default:"1" min:"1" max:"1000000" doc:"Number of objects in a data set; one in the scenario disseminate. Not of a directory or a trace, which have as many as they have."`
	Size    Bytes `json:"size,omitempty" min:"1B" max:"1PiB" label:"size" doc:"Size of each object. A list makes one data set per size."`

	// What only the scenario upload takes; of the four, one at most, instead of size.
	Mix       Mix       `json:"mix,omitempty" scenario:"upload" doc:"Shares of the objects with sizes. The shares hold exactly; within a range, sizes are log-uniform, one object in each equal part of the range."`
	Spread    SizeRange `json:"spread,omitzero" scenario:"upload" doc:"Sizes log-uniform in a range: as many objects have from 1 kB to 10 kB as from 100 MB to 1 GB."`
	Directory string    `json:"directory,omitempty" scenario:"upload" doc:"The files of a directory tree, in sorted order; a relative path begins at the experiment file. Symbolic links and special files are left out."`
	Trace     string    `json:"trace,omitempty" scenario:"upload" doc:"A file with one object per line: its size, and optionally a comma and its name."`

	Copies       int      `json:"copies" scenario:"upload" default:"1" min:"1" max:"100000000" doc:"How often the whole set is stored, each time under other names: photo.jpg becomes photo-00000000.jpg, photo-00000001.jpg. Copies of a directory have the same content, those of seeded content have their own."`
	Compressible Fraction `json:"compressible" scenario:"upload" default:"0%" doc:"Share of each object that compresses to nearly nothing. Not for a directory."`
	Duplicate    Fraction `json:"duplicate" scenario:"upload" default:"0%" doc:"Share of the objects that are, in size and content, an earlier one. Not for a directory or a trace."`
}

// Repetitions is how many measured blocks there are: exactly Max, or between
// Min and Max until an interval is narrow enough.
type Repetitions struct {
	_     struct{} `short:"min,max"`
	Min   int      `json:"min" default:"6" min:"1" max:"10000" doc:"Blocks that are always executed."`
	Max   int      `json:"max" default:"6" min:"1" max:"10000" doc:"Blocks executed at most."`
	Until *Until   `json:"until,omitempty" doc:"Stop between min and max once this interval is narrow enough in every cell."`
}

// Until ends the repetitions when a confidence interval is narrow enough.
type Until struct {
	Metric string   `json:"metric" required:"true" doc:"Key of the metric, such as throughput."`
	Within Fraction `json:"within" required:"true" min:"0.1%" doc:"Half width of the interval of the median, as a share of the median."`
}

// Warmup is what happens before anything counts.
type Warmup struct {
	_      struct{} `short:"trials"`
	Trials int      `json:"trials" default:"1" min:"0" max:"1000" doc:"Warm-up trials of each cell."`
}

// Limits are the deadlines of an experiment.
type Limits struct {
	Deadline Duration `json:"deadline" default:"10m" min:"1ms" doc:"Deadline of one operation; of a leecher in the scenario disseminate, from its release; of the fresh node in the scenario sync. In a fair-shared burst all operations end together: leave time for all bytes to cross the link."`
	Stall    Duration `json:"stall" default:"30s" min:"1ms" doc:"An operation that receives no byte for this long has stalled. In the scenario disseminate it goes on all the same, and ends as stalled if it never receives another; after a fault was undone it is waited for twice as long. In the scenario sync: a node that gets no new block, with no fault to come or to be undone."`
	Start    Duration `json:"start" default:"1m" min:"1s" doc:"Time a system has to become ready."`
	Others   Fraction `json:"others" default:"25%" zero:"none" doc:"Share of the machine's CPU that processes which are not part of the run may use during a trial; above it the trial is invalid (box-busy). A finished run can be judged again by another limit: plimsoll report DIR --set limits.others=none."`
	Machine  Fraction `json:"machine" default:"85%" zero:"none" doc:"Share of a trial's time that its machine line may reach: the CPU seconds that everything on this machine used, divided by its cores, or the CPU seconds of the busiest thread of the link emulator, whichever is more. From it on the trial is invalid (machine-limited): it measured the machine. Judged again likewise."`
	Trial    Duration `json:"trial" default:"auto" zero:"auto" doc:"Time a trial may take altogether. auto: generous, from the plan's estimate and the deadline of one operation; no limit in the scenarios upload and collect, which exit conditions end."`
}

// Exit are the conditions that end a run before all its trials are done.
type Exit struct {
	MaxRuntime Duration `json:"max_runtime" default:"none" zero:"none" doc:"Time the run may take."`
	MaxBytes   Bytes    `json:"max_bytes" default:"none" zero:"none" doc:"File bytes the run may transfer."`
	MaxErrors  Fraction `json:"max_errors" default:"none" zero:"none" doc:"Share of a cell's finished operations that may fail through the server, in one trial, before the run ends."`

	// What a load test is also ended by.
	MaxSpend    string  `json:"max_spend,omitempty" scenario:"upload,collect" form:"money" doc:"Money that a system may have used up since the trial began, in its currency, when the trial ends: 3600. Used is what its contracts cost less what lies unspent in them or, without such a total, its spending by purpose; counted are the increments from poll to poll, from before need.allowance was set."`
	Floor       *Floor  `json:"floor,omitempty" scenario:"upload,collect" doc:"Progress that must be made: a test that goes on slower than this ends."`
	Steady      *Steady `json:"steady,omitempty" scenario:"upload" doc:"End a test that has shown what it can: its rate no longer changes."`
	StorageFull bool    `json:"storage_full" scenario:"upload" default:"true" doc:"End a test when the system says that it can take no more."`
}

// Floor is the least progress of a load test: bytes that are stored (with their
// redundancy, where the system reports it) in every full window.
type Floor struct {
	Bytes  Bytes    `json:"bytes" default:"1.35GB" min:"1B" doc:"Bytes per window, at least; none at all is less."`
	Window Duration `json:"window" default:"1h" min:"1s" doc:"Length of the window, which slides; over the servers' bytes, where the system reports them, from poll to poll."`
}

// Steady is when a load test no longer changes.
type Steady struct {
	Within  Fraction `json:"within" default:"5%" min:"0.1%" doc:"Relative change of the median time to store an object, from the first window of a row to each later one, that counts as none."`
	Windows int      `json:"windows" default:"5" min:"2" max:"1000" doc:"So many windows in a row without a change end the test."`
	Window  Duration `json:"window" default:"1h" min:"1s" doc:"Length of a window."`
}
