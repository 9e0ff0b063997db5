// Package scenario defines scenarios, each of which answers one of Plimsoll's questions. A
// scenario prepares a deployment (its data), executes trials (their operations) and computes
// metrics from the records. The engine does everything else in the same way for all scenarios,
// from the order of trials to the observation of processes.
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

// Scenario answers one question.
type Scenario interface {
	Name() string
	// Metrics defines the numbers that a trial yields.
	Metrics() []record.Metric
	// Problems returns why the scenario cannot run its cells on a system. It is a pure function.
	Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem
	// Prepares returns how many objects and file bytes Prepare stores for these cells.
	Prepares(cells []experiment.Cell) (objects, bytes int64)
	// Prepare prepares the deployment of a system for its cells. The function [Prepare] has checked
	// the nodes. If Prepare fails, it may return a Closer that removes what it stored.
	Prepare(ctx context.Context, site Site, cells []experiment.Cell) (Runner, error)
	// Measure computes the metrics of a trial from its records, by Metric.Key.
	// It is a pure function and omits metrics that do not apply.
	Measure(in Measured) map[string]float64
	// View returns the view of the results.
	View() *analysis.View
}

// Runner executes the trials of one prepared system.
type Runner interface {
	Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink Sink) (Load, error)
}

// Closer is a Runner that stores objects before its trials.
type Closer interface {
	// Close removes the stored objects from an attached system; a started one is
	// removed as a whole. Its error says what remains there and why. It is called
	// once, before the cluster is stopped, and ends with ctx.
	Close(ctx context.Context) error
}

// Readier is a Runner with work to do once for a cell, before its first trial in a session.
// The work is not measured, and cells that are never executed do not need it. A
// PreconditionError ends the run.
type Readier interface {
	Ready(ctx context.Context, cell experiment.Cell) error
}

// Site is a deployment that a scenario works on.
type Site struct {
	Use     experiment.SystemUse
	Cluster system.Cluster
	Client  testbed.Host // where the load comes from
	// Generators are the hosts of the load generator's processes, one per process, in the
	// scenario that can divide its load; the first is Client. If a host's machine is lost, the
	// host is replaced.
	Generators []testbed.Host
	Network    Network // the links between the nodes; nil: none
	// Store creates an empty directory for the store of one trial, on disk or, if memory is above
	// 0, in memory with that many bytes; the caller removes it. It fails, without taking memory,
	// if there is not enough. The directory is on the first server's host, so attached systems
	// have none.
	Store  func(ctx context.Context, memory int64) (StoreDir, error)
	Self   []string // command prefix of our own subcommands
	Dir    string   // scratch directory, kept until the run ends
	Seed   uint64   // of names and contents; for an attached system different in each session
	Run    string   // identifies the run directory, the same in all its sessions
	Limits experiment.Limits
	Base   string // base directory of relative paths in the experiment file
	// Event records an event; Say informs the user.
	Event func(kind, what, detail string, took time.Duration)
	Say   func(text string)
}

// StoreDir is a directory for the store of one trial.
type StoreDir struct {
	Files  testbed.Files // files of its host
	Path   string
	Remove func() error
}

// Sink receives the results of a trial while it runs. All functions are set for every scenario;
// those that record are safe for concurrent use.
type Sink struct {
	Epoch    time.Time          // nanosecond 0 of the operations' times
	Link     *record.LinkCheck  // the link as verified just before; nil: not verified
	Block    func([]byte) error // encoded operations, see record.AppendBlock
	Progress func(ops, bytes int64)
	Number   int                       // of the trial's block, from 0; negative: warm-up
	Marks    func([]record.Mark) error // marks of a swarm's nodes, in the order of their ends
	// Event records an event within the trial, at its At.
	Event func(record.Event) error
	// Begin and End limit the period that Usage covers, for a scenario that does more than load
	// the system: prepare before, verify after. If they are not called, Usage covers the whole
	// trial. Each observes all processes once, which takes some milliseconds.
	Begin, End func()

	// Recorded returns the records of the trial so far, of all its sessions, for load tests.
	// After a session was killed, the operations of its last second may be missing.
	Recorded func() Measured
	Jobs     func(...record.Job) error // records the states of objects; survives kill -9
	Poll     func(record.Poll) error

	// Now returns the time since Epoch. It is monotonic within a session, and later than
	// everything that earlier sessions of the trial recorded.
	Now func() time.Duration
	// State receives the progress of the trial, on which exit conditions are checked. When one
	// is met, the trial's context ends with a *[Stop] as its cause.
	State func(State)
}

// State is the progress of a trial.
type State struct {
	At         time.Duration // since the epoch
	Objects    int64         // of the data set
	Accepted   int64         // objects
	Durable    int64         // of the accepted objects
	Failed     int64         // given up
	Refused    int64         // given up
	Unreadable int64         // the data set could not be read
	Bytes      int64         // file bytes accepted
	Absolute   int64         // bytes gained on storage servers since the trial began; −1: not reported
	AbsoluteAt time.Duration // end of the poll that reported Absolute; negative: none in this session
	// money used up since the trial began, in the smallest unit; nil: not reported
	Spent    *big.Int
	Finished int64  // attempts of this trial that ended by themselves
	Failures int64  // of these, failures of the server
	Full     string // the system's report that it is full; empty: it is not
}

// Ended returns the number of objects whose fate is decided.
func (s *State) Ended() int64 { return s.Accepted + s.Failed + s.Refused + s.Unreadable }

// Stop is an exit condition that ended a trial. It is the cause of the context's end.
type Stop struct {
	Condition string `json:"condition"`
	Why       string `json:"why"`
}

func (s *Stop) Error() string { return fmt.Sprintf("stopped by %s: %s", s.Condition, s.Why) }

// Load holds facts about the load generator in a trial.
type Load struct {
	// length of the window in which operations were started or, without one, from the first
	// start to the last end
	Seconds     float64
	Warmed      float64 // bytes received before the window, in no operation that counts
	CPU         float64 // CPU seconds of the generator's process in the window
	RSSPeak     float64 // bytes
	OfferedRate float64 // of retrieve: operations per second of the arrival process; 0 in a closed loop
	Invalid     []string
	Notes       []string
	Details     []record.Detail    // facts for Measure and the report; no metrics
	Links       []record.LinkCheck // checks by the runner, in addition to the engine's
}

// PreconditionError lists the problems that prevent a run.
type PreconditionError struct{ Problems []testbed.Problem }

// Error implements error.
func (e *PreconditionError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.What
		if p.Name != "" { // empty: it concerns only the plan
			lines[i] = p.Name + ": " + p.What
		}
	}
	return strings.Join(lines, "\n")
}

// Hint says what to do about each problem; the terminal shows hints of errors that have this method.
func (e *PreconditionError) Hint() string {
	var hints []string
	for _, p := range e.Problems {
		if p.Hint != "" {
			hints = append(hints, p.Hint)
		}
	}
	return strings.Join(slices.Compact(hints), "; ")
}

// Unfit returns a PreconditionError of a system that cannot execute some of its cells with its options,
// which is known only once it runs.
func Unfit(name string, problems ...system.Problem) error {
	e := &PreconditionError{}
	for _, p := range problems {
		e.Problems = append(e.Problems, testbed.Problem{Name: name, What: p.What, Hint: p.Hint, Blocking: true})
	}
	return e
}

// Need is an ability that cells require of a system.
type Need struct {
	Ability string
	By      string // what needs it
	Hint    string // for a system that lacks it
}

// Unmet returns the needs that the abilities do not meet, without duplicates.
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

// Prepare prepares a deployment for the cells of its system; info describes the system's kind.
// Options may reduce the abilities of the nodes: if the nodes lack an ability that the cells
// need, the error is a [PreconditionError].
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = errors.Join(err, made.Close(ctx))
	}
	return nil, err
}

// SkipError means that a trial was left out because this machine cannot do what it needs.
type SkipError struct{ Why string }

func (e *SkipError) Error() string { return e.Why }

// Numbers returns a function that puts values into m, except for NaN and infinities: these
// metrics do not apply.
func Numbers(m map[string]float64) (put func(key string, v float64)) {
	return func(key string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m[key] = v
		}
	}
}

// Usage is the resource usage of the processes that the engine observed during a trial.
type Usage struct {
	SystemCPU     float64 // CPU seconds of the system's processes; NaN if none can be observed
	SystemRSSPeak float64 // bytes, their sum; NaN likewise
	OthersBusy    float64 // share of the box's CPU used by other processes
	HarnessCPU    float64 // share of the box's CPU used by this process; NaN if it cannot be measured
	// share of the CPU of the box (with several machines, the busiest) used by all processes
	// together; NaN likewise, and over less than a second. Near 1, the trial measured the machine
	// rather than the system.
	BoxCPU      float64
	EmulatorCPU float64 // share of the box's CPU used by the link emulator's process, if any; NaN likewise
	// EmulatorThread is the share of time for which the busiest thread of the emulator's process
	// used a CPU; NaN like BoxCPU, and if there is no such process.
	EmulatorThread float64
	BusiestCPU     float64 // mean number of CPUs used by the busiest of the system's processes; NaN likewise
	// share of time in which at least one task on the machine waited for storage; NaN if the
	// kernel does not report it
	IOPressure float64
	Nodes      []NodeUsage // of a swarm, in the order of the cluster's nodes
}

// NodeUsage is the resource usage of one node's processes, including processes that were killed
// and their replacements. Values are NaN if they could not be observed.
type NodeUsage struct {
	CPU     float64 // seconds
	RSSPeak float64 // bytes: the maximum of one sample per second
	Written float64 // bytes that the processes caused to be written to storage
}

// Network controls the links of a swarm. Nodes are numbered as in Cluster.Nodes: each has its
// own host, with an access link as the cell defines it. When a trial ends, the engine reverts
// its changes.
type Network interface {
	// Change restores the links of the cell and applies changes to them, which replace all
	// earlier changes. It returns once they are in force.
	Change(ctx context.Context, c NetworkChange) error
	// Check measures the link between two nodes in its current state.
	Check(ctx context.Context, from, to int) (record.LinkCheck, error)
	// Traffic returns the traffic over the access link of each node since the run began, in
	// bytes of IP packets on the wire. Packets dropped by the link count as sent, not as
	// received. Values are NaN if they cannot be measured.
	Traffic(ctx context.Context) []Traffic
	// Emulated reports whether this machine emulates the links and, if not, why.
	Emulated() (ok bool, why string)
}

// NetworkChange describes how the links of a swarm differ from the cell's.
type NetworkChange struct {
	Rates map[int]Rates // of single nodes
	Apart []int         // nodes that reach one another but none of the others; empty: no partition
}

// Rates of a node's access link on the wire, bit/s; 0: as in the cell.
type Rates struct{ Up, Down float64 }

// Traffic is the traffic of a link towards its node and from it, in bytes.
type Traffic struct{ Received, Sent float64 }
