package record

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Metric defines one number that a trial yields. Definitions are stored in
// run.db, so that a run directory explains itself years later.
type Metric struct {
	Key    string `json:"key" db:"key"`       // "ttfb_p50"
	Name   string `json:"name" db:"name"`     // "time to first byte, median"
	Unit   string `json:"unit" db:"unit"`     // SI or a plain word: "s", "B/s", "ratio", "s/GB", "B"
	Better Better `json:"better" db:"better"` // which way is better
	Help   string `json:"help" db:"help"`     // one sentence: how it is computed, from what
}

// Better is the direction in which a metric improves.
type Better string

const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "neither"
)

// Validity reasons: why a trial stays out of fits and comparisons. A trial
// with none is valid.
const (
	ReasonGeneratorSaturated = "generator-saturated"
	ReasonGeneratorLate      = "generator-late"
	ReasonBoxBusy            = "box-busy"
	ReasonMachineLimited     = "machine-limited" // package analysis decides it, as the one below
	ReasonBeyondLine         = "beyond-line"
	ReasonLinkOff            = "link-off"
	ReasonEmulatorLate       = "emulator-late"
	ReasonEmulatorDied       = "emulator-died"
	ReasonDaemonRestarted    = "daemon-restarted"
	ReasonDaemonDied         = "daemon-died"
	ReasonMachineLost        = "machine-lost"
	ReasonThrottled          = "throttled"
	ReasonNoOperations       = "no-operations"
	ReasonClocks             = "clocks-disagree" // of an imported trial
	ReasonClock              = "clock"
)

// meanings say what validity reasons mean, in a line each.
func meanings() map[string]string {
	return map[string]string{
		ReasonGeneratorSaturated: "the load generator used all the CPU it could get",
		ReasonGeneratorLate:      "the load generator sent requests late",
		ReasonBoxBusy:            "other processes used more of the CPU than limits.others allows",
		ReasonMachineLimited:     "this machine's CPUs were the bottleneck (limits.machine)",
		ReasonBeyondLine:         "a trial of this cell was faster than its link allows",
		ReasonLinkOff:            "the link's round trip or rate was off by more than link.tolerance",
		ReasonEmulatorLate:       "the link emulator sent packets late",
		ReasonEmulatorDied:       "the link emulator ended during the trial",
		ReasonDaemonRestarted:    "a process of the system had just restarted",
		ReasonDaemonDied:         "a process of the system ended during the trial",
		ReasonMachineLost:        "a machine of the system was out of reach for good",
		ReasonThrottled: "a CPU limit (of a container, a service) held back a machine; a note of the trial " +
			"names it",
		ReasonNoOperations: "too few operations",
		ReasonClocks:       "answers have earlier times than their requests",
		ReasonClock:        "the clock of a load generator on another machine was not known to 1 % of the window",
	}
}

// Meaning says what a validity reason means; the reason itself where it is not known.
func Meaning(reason string) string { return cmp.Or(meanings()[reason], reason) }

// Reasons are all validity reasons, in order.
func Reasons() []string { return slices.Sorted(maps.Keys(meanings())) }

// NoteNotEmulated marks a trial whose link was asked for and not emulated.
const NoteNotEmulated = "link: not emulated"

// NoteEnded begins the note of what ended a trial that goes on: "all done",
// "all durable", or the name of an exit condition with its reason.
const NoteEnded = "ended: "

// TrialState is where a trial is in its life.
type TrialState string

const (
	Pending TrialState = "pending"
	Running TrialState = "running"
	Done    TrialState = "done"
	Failed  TrialState = "failed"  // it could not be executed at all; Error says why
	Skipped TrialState = "skipped" // left out on purpose, because it would take too long; Error says why
)

// Trial is one execution of a cell: the unit of replication.
type Trial struct {
	ID       int64              `json:"id" db:"id"`
	Cell     string             `json:"cell" db:"cell"` // the plan's cell ID
	Block    int                `json:"block" db:"block"`
	Warmup   bool               `json:"warmup,omitempty" db:"warmup"` // executed, recorded, never part of a statistic
	State    TrialState         `json:"state" db:"state"`
	Epoch    time.Time          `json:"epoch" db:"epoch_ns"` // wall clock at nanosecond 0 of its operations
	Seconds  float64            `json:"seconds" db:"coalesce(seconds, 0)"`
	Metrics  map[string]float64 `json:"metrics,omitempty"` // by Metric.Key
	Outcomes map[string]int64   `json:"outcomes,omitempty"`
	Bytes    int64              `json:"-"`                              // body bytes of all operations, read only
	Classes  map[string]int64   `json:"classes,omitempty"`              // error classes, counted
	Invalid  []string           `json:"invalid,omitempty" db:"invalid"` // validity reasons; empty: valid
	Notes    []string           `json:"notes,omitempty" db:"notes"`     // "receive: drop (content not compared)", …
	Details  []Detail           `json:"details,omitempty"`              // numbers with names of their own
	Error    string             `json:"error,omitempty" db:"error"`
}

// BlockName is how a block is called where people read: "block 1" is the first
// that counts, which is 0 in files; those before it are warm-ups.
func BlockName(block int) string {
	if block < 0 {
		return "warm-up"
	}
	return "block " + strconv.Itoa(block+1)
}

// Detail is a number that a trial has for something the system names: a phase
// of its operations, a process.
type Detail struct {
	Kind  string  `json:"kind" db:"kind"` // one of the Detail constants
	Name  string  `json:"name" db:"name"` // the phase, the process
	Value float64 `json:"value" db:"value"`
}

// Kinds of details.
const (
	DetailPhase = "phase" // seconds of a phase, by the system's own account, median over the trial's operations
	// Of the nodes of a swarm, in the order of the cluster's nodes.
	// 1: the node had the content from the beginning, 0: it was a leecher, −1: it took no part
	DetailSeeder = "seeder"
	// bytes that crossed the node's access link towards it, from the release to the last completion, in IP packets as
	// they are on the wire
	DetailLinkReceived = "link_received"
	DetailLinkSent     = "link_sent" // likewise, from it
	DetailNodeCPU      = "node_cpu"  // CPU seconds of the node's processes in that time
	DetailNodeRSS      = "node_rss"  // bytes: largest resident set of the node's processes in that time
	DetailPID          = "pid"       // process id: distinguishes a process from the one that replaced it
	// bytes: resident set of a process once it was ready, before anything was stored
	DetailRSSStart = "rss_start"
	DetailPSSStart = "pss_start" // bytes: proportional set likewise
	DetailRSSRest  = "rss_rest"  // bytes: resident set of a process just before the load
	DetailPSSRest  = "pss_rest"  // bytes: proportional set likewise
	// Of the peers of a fresh node, in their order.
	DetailPeerBlocks = "peer_blocks" // blocks that it delivered
	DetailPeerRate   = "peer_rate"   // bit/s: rate of its link towards the node; 0: unlimited
	DetailPeerManner = "peer_manner" // 0: honest, 1: silent, 2: a stranger
	// bytes: highest resident set during the load (VmHWM, made to begin anew before it at what was resident then)
	DetailRSSPeak = "rss_peak"
	// What metrics are computed from beside operations, jobs and polls: docs/run-db.md lists their names.
	DetailLoad       = "load"        // what the load generator says of itself
	DetailUsage      = "usage"       // what the engine observed of processes
	DetailHeldBefore = "held_before" // what storage servers held before the operations
	DetailHeldAfter  = "held_after"  // likewise after them
	DetailFollower   = "follower"    // what a fresh node said of itself, and its chain
	// Of load generators on machines with clocks of their own.
	DetailClockAhead  = "clock_ahead"  // seconds that the clock was ahead of the engine's, which were taken off
	DetailClockError  = "clock_error"  // seconds: the largest error of its times after that
	DetailNodeRead    = "node_read"    // bytes that storage had to read for the node's processes
	DetailNodeWritten = "node_written" // bytes that they made storage write
	DetailCalled      = "called"       // seconds from a leecher's release to the first call that gave it its task
	DetailGap         = "gap"          // seconds: longest time of a leecher in which something could happen unseen
	// seconds since the epoch: a leecher had all on disk, or the wait for that ended
	DetailOnDisk      = "on_disk"
	DetailDiskOutcome = "on_disk_outcome"  // how that wait ended: an Outcome
	DetailPayload     = "payload_received" // payload bytes that a leecher received, by its node's word
	DetailOutage      = "outage"           // seconds from a fault's beginning to its undoing
	// seconds from a fault's undoing to a leecher's next verified bytes; −1: none came
	DetailRecovery = "recovery"
)

// Valid reports whether the trial may enter fits and comparisons.
func (t Trial) Valid() bool { return t.State == Done && len(t.Invalid) == 0 && !t.Warmup }

// Sample is one observation of one process (or of the whole box: Process "box").
// Cumulative counters are since the process started. A field that the kernel
// would not tell is NaN.
type Sample struct {
	Start      time.Duration `db:"start_ns"` // of the poll, since the trial's epoch
	End        time.Duration `db:"end_ns"`
	Process    string        `db:"process"` // "nginx/server", "load", "link", "box"
	Role       string        `db:"role"`    // "system", "generator", "emulator", "box"
	PID        int           `db:"pid"`
	CPU        float64       `db:"cpu"`         // user + system seconds, children included
	RSS        float64       `db:"rss"`         // bytes
	PSS        float64       `db:"pss"`         // bytes; NaN unless asked for
	ReadBytes  float64       `db:"read_bytes"`  // bytes from storage
	WriteBytes float64       `db:"write_bytes"` // bytes to storage
	FDs        float64       `db:"fds"`
	NetRx      float64       `db:"net_rx"` // bytes received by the host's interface
	NetTx      float64       `db:"net_tx"` // bytes sent by the host's interface
	Threads    float64       `db:"threads"`
}

// RealLink is the emulator of a link between machines, of which nothing was asked: it is
// measured, not judged, and has no load line, as what TCP reaches is no physical limit.
const RealLink = "real"

// MeshLink is the emulator of links between machines: "user" on each, with UDP between them.
const MeshLink = "user over UDP"

// KernelMeshLink is that of links between machines which netem on each emulates.
const KernelMeshLink = "netem over VXLAN"

// LinkCheck is what was measured through a link before a cell used it,
// beside what was asked for. Times in seconds, rates in bit/s.
type LinkCheck struct {
	Trial      int64   `json:"trial" db:"trial"`
	From       string  `json:"from" db:"from_host"`
	To         string  `json:"to" db:"to_host"`
	Emulator   string  `json:"emulator" db:"emulator"`     // "netem", "user", "tbf", "none", or one of those above
	Congestion string  `json:"congestion" db:"congestion"` // TCP congestion control of both ends
	WantRTT    float64 `json:"want_rtt" db:"want_rtt"`
	RTT        float64 `json:"rtt" db:"rtt"`             // median
	RTTP99     float64 `json:"rtt_p99" db:"rtt_p99"`     // 99th percentile
	WantRate   float64 `json:"want_rate" db:"want_rate"` // TCP payload rate the link should carry; 0: unlimited
	Rate       float64 `json:"rate" db:"rate"`           // TCP payload rate measured, From → To
	WantLoss   float64 `json:"want_loss" db:"want_loss"`
	Loss       float64 `json:"loss" db:"loss"`             // NaN when not measured
	Lateness   float64 `json:"lateness_p99" db:"lateness"` // the emulator's own, seconds; NaN when it has none
	Tolerance  float64 `json:"tolerance" db:"tolerance"`
	OK         bool    `json:"ok" db:"ok"`
	Why        string  `json:"why,omitempty" db:"why"`
}

// Event is something that happened at a moment: a phase, a fault, a probe, a
// violation.
type Event struct {
	Trial  int64         `json:"trial,omitempty" db:"trial"` // 0: the run
	At     time.Time     `json:"at" db:"at_ns"`
	Kind   string        `json:"kind" db:"kind"` // "phase", "fault", "health", "note", "error", …
	What   string        `json:"what" db:"what"`
	Detail string        `json:"detail,omitempty" db:"detail"`
	Took   time.Duration `json:"took,omitempty" db:"took_ns"`
}

var (
	metricTable = newTable[Metric]("metrics", "place", "place, ", "")
	sampleTable = newTable[Sample]("samples", "id", "trial, ", "")
	linkTable   = newTable[LinkCheck]("links", "id", "", "")
	eventTable  = newTable[Event]("events", "id", "", "")
	trialTable  = newTable[Trial]("trials", "id", "", "") // only read: statements of its own begin and end a trial
)
