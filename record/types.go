package record

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Metric defines one result of a trial. Definitions are stored in run.db, so that a run
// directory can be understood years later.
type Metric struct {
	Key    string `json:"key" db:"key"`       // "ttfb_p50"
	Name   string `json:"name" db:"name"`     // "time to first byte, median"
	Unit   string `json:"unit" db:"unit"`     // SI or a word: "s", "B/s", "ratio", "s/GB", "B"
	Better Better `json:"better" db:"better"` // which way is better
	Help   string `json:"help" db:"help"`     // one sentence: how it is computed, and from what
}

// Better is the direction in which a metric improves.
type Better string

const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "neither"
)

// Validity reasons: why a trial is excluded from fits and comparisons. A trial without any is
// valid.
const (
	ReasonGeneratorSaturated = "generator-saturated"
	ReasonGeneratorLate      = "generator-late"
	ReasonBoxBusy            = "box-busy"
	ReasonMachineLimited     = "machine-limited" // decided by package analysis, like the next one
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

// meanings explains each validity reason in a line.
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
		ReasonMachineLost:        "a machine of the system became permanently unreachable",
		ReasonThrottled: "a CPU limit (of a container, a service) held back a machine; a note of the trial " +
			"names it",
		ReasonNoOperations: "too few operations",
		ReasonClocks:       "answers have earlier times than their requests",
		ReasonClock:        "the clock of a load generator on another machine was uncertain by more than 1 % of the window",
	}
}

// Meaning explains a validity reason; an unknown one is returned unchanged.
func Meaning(reason string) string { return cmp.Or(meanings()[reason], reason) }

// Reasons returns all validity reasons, sorted.
func Reasons() []string { return slices.Sorted(maps.Keys(meanings())) }

// NoteNotEmulated marks a trial whose link was requested but not emulated.
const NoteNotEmulated = "link: not emulated"

// NoteEnded is the prefix of the note about the end of a trial that continues: what was stored,
// or the name of an exit condition with its reason.
const NoteEnded = "ended: "

// TrialState is the state of a trial.
type TrialState string

const (
	Pending TrialState = "pending"
	Running TrialState = "running"
	Done    TrialState = "done"
	Failed  TrialState = "failed"  // it could not be executed; Error says why
	Skipped TrialState = "skipped" // left out: this machine cannot do what it needs; Error says why
)

// Trial is one execution of a cell: the unit of replication.
type Trial struct {
	ID       int64              `json:"id" db:"id"`
	Cell     string             `json:"cell" db:"cell"` // the plan's cell ID
	Block    int                `json:"block" db:"block"`
	Warmup   bool               `json:"warmup,omitempty" db:"warmup"` // executed and recorded, but in no statistic
	State    TrialState         `json:"state" db:"state"`
	Epoch    time.Time          `json:"epoch" db:"epoch_ns"` // wall clock at nanosecond 0 of its operations
	Seconds  float64            `json:"seconds" db:"coalesce(seconds, 0)"`
	Metrics  map[string]float64 `json:"metrics,omitempty"` // by Metric.Key
	Outcomes map[string]int64   `json:"outcomes,omitempty"`
	Bytes    int64              `json:"-"`                              // body bytes of all operations; set only by Reader
	Classes  map[string]int64   `json:"classes,omitempty"`              // number of operations by error class
	Invalid  []string           `json:"invalid,omitempty" db:"invalid"` // validity reasons; empty: valid
	Notes    []string           `json:"notes,omitempty" db:"notes"`     // "receive: drop (content not compared)", …
	Details  []Detail           `json:"details,omitempty"`              // further named numbers
	Error    string             `json:"error,omitempty" db:"error"`
}

// BlockName names a block for people: "block 1" is the first that counts, which is 0 in files;
// those before it are warm-ups.
func BlockName(block int) string {
	if block < 0 {
		return "warm-up"
	}
	return "block " + strconv.Itoa(block+1)
}

// Detail is a number of a trial about something named by the system, such as a phase of its
// operations or a process.
type Detail struct {
	Kind  string  `json:"kind" db:"kind"` // one of the Detail constants
	Name  string  `json:"name" db:"name"` // the phase, the process
	Value float64 `json:"value" db:"value"`
}

// Kinds of details.
const (
	DetailPhase = "phase" // seconds of a phase as reported by the system, median over the trial's operations
	// For the nodes of a swarm, in the order of the cluster's nodes.
	// 1: the node had the content from the beginning, 0: it was a leecher, −1: it took no part
	DetailSeeder = "seeder"
	// bytes of IP packets on the node's access link towards it, from the release to the last completion
	DetailLinkReceived = "link_received"
	DetailLinkSent     = "link_sent" // the same, away from it
	DetailNodeCPU      = "node_cpu"  // CPU seconds of the node's processes in that time
	DetailNodeRSS      = "node_rss"  // bytes: largest resident set of the node's processes in that time
	// bytes: resident set of a process once it was ready, before anything was stored
	DetailRSSStart = "rss_start"
	// For the peers of a fresh node, in order.
	DetailPeerBlocks = "peer_blocks" // blocks that it delivered
	DetailPeerRate   = "peer_rate"   // bit/s: rate of its link towards the node; 0: unlimited
	DetailPeerManner = "peer_manner" // 0: honest, 1: silent, 2: a stranger
	// bytes: largest resident set during the load (VmHWM, reset before it)
	DetailRSSPeak = "rss_peak"
	// Metrics are computed from these besides operations, jobs and polls; docs/run-db.md lists their names.
	DetailLoad       = "load"        // reported by the load generator about itself
	DetailUsage      = "usage"       // resource usage observed by the engine
	DetailHeldBefore = "held_before" // what storage servers held before the operations
	DetailHeldAfter  = "held_after"  // what they held after them
	DetailFollower   = "follower"    // reported by a fresh node about itself and its chain
	// For load generators on machines with their own clocks.
	DetailClockAhead  = "clock_ahead"      // seconds that the clock was ahead of the engine's, already subtracted
	DetailClockError  = "clock_error"      // seconds: largest error of its times after that
	DetailNodeWritten = "node_written"     // bytes that they made storage write
	DetailCalled      = "called"           // seconds from a leecher's release to the first call that gave it its task
	DetailGap         = "gap"              // seconds: longest interval in which an event at a leecher could go unnoticed
	DetailPayload     = "payload_received" // payload bytes received by a leecher, as its node reports
	DetailOutage      = "outage"           // seconds from the beginning of a fault to its end
	// seconds from the end of a fault to a leecher's next verified bytes; −1: none came
	DetailRecovery = "recovery"
)

// Valid reports whether the trial may enter fits and comparisons.
func (t Trial) Valid() bool { return t.State == Done && len(t.Invalid) == 0 && !t.Warmup }

// Sample is one observation of a process (or of the whole machine: Process "box"). Cumulative
// counters are since the process started. A field that the kernel does not report is NaN.
type Sample struct {
	Start      time.Duration `db:"start_ns"` // of the poll, since the trial's epoch
	End        time.Duration `db:"end_ns"`
	Process    string        `db:"process"` // "nginx/server", "load", "link", "box"
	Role       string        `db:"role"`    // "system", "generator", "emulator", "box"
	PID        int           `db:"pid"`
	CPU        float64       `db:"cpu"`         // user + system seconds, children included
	RSS        float64       `db:"rss"`         // bytes
	ReadBytes  float64       `db:"read_bytes"`  // bytes from storage
	WriteBytes float64       `db:"write_bytes"` // bytes to storage
}

// RealLink is the emulator name of a real link between machines: it is measured but not judged,
// and has no load line, because the rate that TCP reaches is not a physical limit.
const RealLink = "real"

// MeshLink is the emulator name of links between machines with "user" on each and UDP between them.
const MeshLink = "user over UDP"

// KernelMeshLink is the emulator name of links between machines with netem on each.
const KernelMeshLink = "netem over VXLAN"

// LinkCheck is the measurement of a link before a cell used it, with the expected values. Times
// are in seconds, rates in bit/s.
type LinkCheck struct {
	Trial      int64   `json:"trial" db:"trial"`
	From       string  `json:"from" db:"from_host"`
	To         string  `json:"to" db:"to_host"`
	Emulator   string  `json:"emulator" db:"emulator"`     // "netem", "user", "tbf", "none", or one of the above
	Congestion string  `json:"congestion" db:"congestion"` // TCP congestion control of both ends
	WantRTT    float64 `json:"want_rtt" db:"want_rtt"`
	RTT        float64 `json:"rtt" db:"rtt"`             // median
	RTTP99     float64 `json:"rtt_p99" db:"rtt_p99"`     // 99th percentile
	WantRate   float64 `json:"want_rate" db:"want_rate"` // TCP payload rate the link should carry; 0: unlimited
	Rate       float64 `json:"rate" db:"rate"`           // TCP payload rate measured, From → To
	WantLoss   float64 `json:"want_loss" db:"want_loss"`
	Loss       float64 `json:"loss" db:"loss"`             // NaN if not measured
	Lateness   float64 `json:"lateness_p99" db:"lateness"` // of the emulator's packets, seconds; NaN if unknown
	Tolerance  float64 `json:"tolerance" db:"tolerance"`
	OK         bool    `json:"ok" db:"ok"`
	Why        string  `json:"why,omitempty" db:"why"`
}

// Event is something that happened at a time: a phase, a fault, a probe, a violation.
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
	trialTable  = newTable[Trial]("trials", "id", "", "") // only read; trials are written by separate statements
)
