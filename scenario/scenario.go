// Package scenario says what happens in one trial of each of the questions that
// Plimsoll answers. A scenario prepares a deployment (its data), executes a
// trial (its operations) and turns what was recorded into metrics; everything
// else, from the order of trials to the observation of processes, is the
// engine's and the same for all.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Scenario is one question.
type Scenario interface {
	Name() string
	// Metrics defines the numbers that a trial yields.
	Metrics() []record.Metric
	// Problems says why the scenario cannot run its cells on a system; it looks at
	// nothing but its arguments.
	Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem
	// Prepares says how many objects and file bytes Prepare stores for these cells.
	Prepares(cells []experiment.Cell) (objects, bytes int64)
	// Prepare brings what the cells of one system need into its deployment, whose nodes were
	// checked: see the function [Prepare]. When it fails, a Closer that it returns removes what it stored.
	Prepare(ctx context.Context, site Site, cells []experiment.Cell) (Runner, error)
	// Measure turns what was recorded in a trial into metrics, by Metric.Key.
	// It is a pure function; a metric that does not apply is left out.
	Measure(in Measured) map[string]float64
	// View is how the numbers are read.
	View() *analysis.View
}

// Runner executes the trials of one prepared system.
type Runner interface {
	Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink Sink) (Load, error)
}

// Closer is a Runner that stores objects before its trials.
type Closer interface {
	// Close removes from an attached system what was stored there; a started one
	// goes as a whole. Its error says what stays there, and why. It is called
	// once, before the cluster is stopped, and is bounded by ctx.
	Close(ctx context.Context) error
}

// Readier is a Runner with something to do once for a cell, before the first trial
// that a session executes of it, which cells that are never executed do not need.
// It is outside of what is measured. An UnfitError ends the run.
type Readier interface {
	Ready(ctx context.Context, cell experiment.Cell) error
}

// Site is a deployment that a scenario works on.
type Site struct {
	Use     experiment.SystemUse
	Cluster system.Cluster
	Client  testbed.Host // where the load comes from
	// Generators are the hosts of the load generator's processes, one for each, of the
	// scenario that can divide its load; the first is Client. One whose machine is lost is replaced.
	Generators []testbed.Host
	Network    Network // the links between the nodes; nil: they have none of their own
	// Disk and RAM make an empty directory for the store of one trial, on the disk or
	// in memory; remove it when done. RAM fails, without taking memory, when there is
	// not enough for size bytes. They say what the directory is on ("ext4 on /dev/vda",
	// "tmpfs of 2 GiB"). They are of the first server's host: not for attached systems.
	Disk   func(ctx context.Context) (StoreDir, error)
	RAM    func(ctx context.Context, size int64) (StoreDir, error)
	Self   []string // command prefix of our own subcommands
	Dir    string   // scratch directory, kept until the run ends
	Seed   uint64   // of the data: names and contents; of an attached system another one in each session
	Run    string   // names the run directory, the same in all its sessions
	Limits experiment.Limits
	Base   string // directory that relative paths of the experiment file start from
	// Event records something that happened; Say informs the user.
	Event func(kind, what, detail string, took time.Duration)
	Say   func(text string)
}

// StoreDir is a directory for the store of one trial.
type StoreDir struct {
	Files  testbed.Files // of the host that it is on
	Path   string
	On     string // what it is on
	Remove func() error
}

// Sink takes what a trial yields while it runs: each function is there for every scenario.
// Those that record are safe for concurrent use.
type Sink struct {
	Epoch    time.Time          // nanosecond 0 of the operations' times
	Link     *record.LinkCheck  // the link as verified just before; nil: none was
	Block    func([]byte) error // encoded operations, see record.AppendBlock
	Progress func(ops, bytes int64)
	Number   int                       // of the trial's block, from 0; negative: warm-up
	Marks    func([]record.Mark) error // of a swarm's nodes, in the order of their ends
	// Event records something that happened within the trial, at its At.
	Event func(record.Event) error
	// Begin and End are the edges of the time that Usage is of, for a scenario that
	// does more than load the system: prepare before, verify after. Where they are not called it
	// is the whole trial. Each observes all processes once, which takes some
	// milliseconds.
	Begin, End func()

	// Recorded is what the trial has recorded so far, in all its sessions, for load tests: of
	// the operations of a session that was killed, those of its last second may be missing.
	Recorded func() Measured
	Jobs     func(...record.Job) error // records what became of objects; kill -9 does not lose it
	Poll     func(record.Poll) error

	// Now is the time since Epoch: monotonic within a session, and beyond
	// everything that earlier sessions of the trial have recorded.
	Now func() time.Duration
	// State is given the progress of the trial; exit conditions judge by it. When one of
	// them is met, the trial's context ends with a *[Stop] as its cause.
	State func(State)
}

// State is how far a trial is.
type State struct {
	At         time.Duration // since the epoch
	Objects    int64         // of the data set
	Accepted   int64         // objects
	Durable    int64         // of them
	Failed     int64         // given up
	Refused    int64         // given up
	Unreadable int64         // our own data could not be read
	Bytes      int64         // file bytes accepted
	Absolute   int64         // bytes of storage servers since the trial began; −1: not reported
	AbsoluteAt time.Duration // end of the poll that reported it; negative: no poll of this session did
	// used up since the trial began, its budget included, in the smallest unit; nil: not reported
	Spent    *big.Int
	Decimals int    // of Spent
	Finished int64  // attempts that came to an end of their own, in this trial
	Failures int64  // of them that failed through the server
	Full     string // the system's words that it can take no more; empty: it can
	Idle     bool   // it pauses on purpose: its progress is not judged
}

// Ended is of how many objects it is decided what becomes of them.
func (s *State) Ended() int64 { return s.Accepted + s.Failed + s.Refused + s.Unreadable }

// Stop is an exit condition that ended a trial: the cause of its context's end.
type Stop struct {
	Condition string `json:"condition"`
	Why       string `json:"why"`
}

func (s *Stop) Error() string { return fmt.Sprintf("stopped by %s: %s", s.Condition, s.Why) }

// Load is what the load generator says of itself after a trial.
type Load struct {
	// length of the window that operations were started in or, without one, first start to last end
	Seconds      float64
	Warmed       float64 // bytes that came before the window, in no operation that counts
	CPU          float64 // CPU seconds of the generator's process in the window
	RSSPeak      float64 // bytes
	OfferedRate  float64 // operations per second that the arrival process asked for; 0 in a closed loop
	AchievedRate float64 // operations per second that came to an end of their own
	LagP99       float64 // seconds between intended and actual start
	Invalid      []string
	Notes        []string
	Details      []record.Detail    // facts for Measure and the report; no metrics
	Links        []record.LinkCheck // measured by the runner, beside the engine's own
}

// UnfitError is a system that cannot execute some of its cells with the options
// that it was given: known only once it runs.
type UnfitError struct {
	error
	hint string
}

// Hint implements the interface that the terminal asks for hints.
func (e *UnfitError) Hint() string { return e.hint }

// Unfit is such an error, of one or several problems.
func Unfit(name string, problems ...system.Problem) error {
	var lines, hints []string
	for _, p := range problems {
		lines, hints = append(lines, name+": "+p.What), append(hints, p.Hint)
	}
	return &UnfitError{errors.New(strings.Join(lines, "\n")), strings.Join(slices.Compact(hints), "; ")}
}

// Need is an ability that cells ask of a system.
type Need struct {
	Ability string
	By      string // what needs it
	Hint    string // for a system that lacks it
}

// Unmet are the needs that abilities do not meet, each said once.
func Unmet(can []string, needs []Need) (all []system.Problem) {
	for _, n := range needs {
		p := system.Problem{What: fmt.Sprintf("it has no ability %q, which %s needs (it can: %s)", n.Ability, n.By,
			strings.Join(can, ", ")), Hint: n.Hint}
		if !slices.Contains(can, n.Ability) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// Prepare prepares a deployment for the cells of its system, of whose kind is info. What
// its options leave of what the kind can do shows in its nodes; where they lack what the
// cells need, the error is an [UnfitError].
func Prepare(ctx context.Context, s Scenario, info system.Info, site Site, cells []experiment.Cell) (Runner, error) {
	info.Fresh = site.Cluster.Identity()["connections"] == "fresh"
	for _, n := range site.Cluster.Nodes() {
		if info.Can = system.Abilities(n); info.Fresh {
			info.Can = append(info.Can, "fresh")
		}
		if problems := s.Problems(site.Use, info, cells); len(problems) > 0 {
			return nil, Unfit(site.Use.Name, problems...)
		}
	}
	r, err := s.Prepare(ctx, site, cells)
	if err == nil {
		return r, nil
	}
	if made, ok := r.(Closer); ok {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RemoveTimeout)
		defer cancel()
		err = errors.Join(err, made.Close(ctx))
	}
	return nil, err
}

// SkipError is a trial that was left out on purpose: it would take too long.
type SkipError struct{ Why string }

func (e *SkipError) Error() string { return e.Why }

// Numbers puts values into m, but for those that are no numbers: metrics that do
// not apply.
func Numbers(m map[string]float64) (put func(key string, v float64)) {
	return func(key string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[key] = v
		}
	}
}

// Usage is what the engine observed of the processes during a trial.
type Usage struct {
	SystemCPU     float64 // CPU seconds of the system's processes; NaN when none can be observed
	SystemRSSPeak float64 // bytes, their sum; NaN likewise
	OthersBusy    float64 // share of the box's CPU used by processes that are not ours
	HarnessCPU    float64 // share of the box's CPU used by this process; NaN where it cannot be measured
	// share of the box's CPU used by all processes together; NaN likewise, and over less than a second. Near 1: it is
	// the machine that was measured
	BoxCPU      float64
	EmulatorCPU float64 // share of it used by the link emulator's process, where there is one; NaN likewise
	// EmulatorThread is the share of the time in which the busiest thread of the
	// emulator's process used a CPU; NaN as BoxCPU, and where there is no such process.
	EmulatorThread float64
	BusiestCPU     float64 // CPUs that the one of the system's processes kept busy that used most; NaN likewise
	// share of the time in which at least one task on the machine waited for storage; NaN where the kernel does not
	// report it
	IOPressure float64
	Nodes      []NodeUsage // of a swarm, in the order of the cluster's nodes
}

// NodeUsage is what the processes of one node used, also of those that were killed
// and of those that took their place. NaN when they could not be observed.
type NodeUsage struct {
	CPU     float64 // seconds
	RSSPeak float64 // bytes: the largest that a look, once a second, has seen
	Read    float64 // bytes that storage had to read for them
	Written float64 // bytes that they made storage write
}

// Network is the links of a swarm. Nodes are counted as in Cluster.Nodes: each
// has a host of its own, whose access link is shaped as the cell says. What a
// trial changes is undone by the engine when the trial ends.
type Network interface {
	// Change makes the links what the cell says but for these changes, which
	// replace all earlier ones: no changes bring back what the cell says. It
	// returns once they are in force.
	Change(ctx context.Context, c NetworkChange) error
	// Check measures the link between two nodes as it is now.
	Check(ctx context.Context, from, to int) (record.LinkCheck, error)
	// Traffic is what has crossed the access link of each node since the run began,
	// in bytes of IP packets as they are on the wire; what the link then dropped was
	// sent and not received. NaN where it cannot be measured.
	Traffic(ctx context.Context) []Traffic
	// Emulated is false where links are not emulated on this machine; why says it.
	Emulated() (ok bool, why string)
}

// NetworkChange is how the links of a swarm differ from what the cell says.
type NetworkChange struct {
	Rates map[int]Rates // of single nodes
	Apart []int         // nodes that reach one another and none of the others; empty: no partition
}

// Rates of a node's access link on the wire, bit/s; 0: as the cell says.
type Rates struct{ Up, Down float64 }

// Traffic is what has crossed a link towards its node and from it, in bytes.
type Traffic struct{ Received, Sent float64 }
