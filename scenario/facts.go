package scenario

import (
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Measured holds the records from which a trial's metrics are computed. All of it is in run.db.
type Measured struct {
	Cell    experiment.Cell
	Summary *record.Summary
	Load    Load // Details contains all details that the trial recorded
	Usage   Usage
	Link    *record.LinkCheck // nil if no link was measured for this cell
	TLS     bool              // the system was reached over TLS

	// Streams of the trial's records.
	Ops    iter.Seq[record.Op]
	Jobs   iter.Seq[record.Job]
	Polls  iter.Seq[record.Poll]
	Events iter.Seq[record.Event]
	failed *error // errors of the streams, joined
}

// ErrNoFacts means that a trial recorded its metrics but not all the facts that they are
// computed from, as in older versions and imported trials. The stored metrics remain.
var ErrNoFacts = errors.New("the trial did not record what its metrics are computed from")

// ReadFacts reads the records of a trial, except for its summary. Memory use is constant: the
// streams are read when they are used, and [Measured.Err] then returns their errors.
func ReadFacts(r *record.Reader, trial record.Trial, cell experiment.Cell) (Measured, error) {
	in := Recorded(r, trial.ID)
	in.restore(trial.Details)
	links := slices.Collect(UntilError(r.LinksOf(trial.ID), in.failed))
	own := max(0, len(links)-int(in.LoadDetail(loadLinks)))
	if own > 0 {
		in.Link = &links[own-1]
	}
	in.Cell, in.Load.Links = cell, links[own:]
	return in, in.Err()
}

// Recorded returns only the streams of a trial's records so far.
func Recorded(r *record.Reader, trial int64) Measured {
	failed := new(error)
	return Measured{failed: failed,
		Ops: UntilError(r.Ops(trial), failed), Jobs: UntilError(r.Jobs(trial), failed),
		Polls: UntilError(r.Polls(trial), failed), Events: UntilError(r.EventsOf(trial), failed),
	}
}

// Err returns why streams ended early, or nil.
func (in *Measured) Err() error {
	if in.failed == nil {
		return nil
	}
	return *in.failed
}

// Recompute computes a trial's metrics from its records. The engine calls it when a trial ends,
// with the details that it is about to store and with the summary; a nil summary is read.
func Recompute(s Scenario, r *record.Reader, trial record.Trial, cell experiment.Cell,
	summary *record.Summary) (map[string]float64, error) {
	in := Measured{Load: Load{Details: trial.Details}}
	if math.IsNaN(in.Detail(record.DetailLoad, loadSeconds)) { // recorded by an older version, or imported
		return nil, ErrNoFacts
	}
	in, err := ReadFacts(r, trial, cell)
	if in.Summary = summary; err == nil && summary == nil {
		in.Summary, err = r.Summary(trial.ID)
	}
	var m map[string]float64
	if err == nil {
		m, err = s.Measure(in), in.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("compute the metrics of trial %d: %w", trial.ID, err)
	}
	return m, nil
}

// UntilError returns a stream without errors: an error ends the stream and is joined to failed.
func UntilError[T any](all iter.Seq2[T, error], failed *error) iter.Seq[T] {
	return func(yield func(T) bool) {
		for x, err := range all {
			if err != nil {
				*failed = errors.Join(*failed, err)
				return
			}
			if !yield(x) {
				return
			}
		}
	}
}

// ByKind summarizes operations by kind.
func ByKind(ops iter.Seq[record.Op]) map[record.OpKind]*record.Summary {
	kinds := map[record.OpKind]*record.Summary{}
	for op := range ops {
		if kinds[op.Kind] == nil {
			kinds[op.Kind] = record.NewSummary()
		}
		_ = kinds[op.Kind].Ops([]record.Op{op}) // never fails
	}
	return kinds
}

// field is a number of Load or Usage that is stored as a detail.
type field struct {
	kind, name string
	at         *float64
}

// fields returns the fields of both in the order in which they are stored.
func fields(l *Load, u *Usage) []field {
	return []field{
		{record.DetailLoad, "cpu", &l.CPU},
		{record.DetailLoad, "offered_rate", &l.OfferedRate},
		{record.DetailLoad, "rss_peak", &l.RSSPeak}, {record.DetailLoad, loadSeconds, &l.Seconds},
		{record.DetailLoad, "warmed", &l.Warmed},
		{record.DetailUsage, "box_cpu", &u.BoxCPU}, {record.DetailUsage, "busiest_cpu", &u.BusiestCPU},
		{record.DetailUsage, "emulator_cpu", &u.EmulatorCPU},
		{record.DetailUsage, "emulator_thread", &u.EmulatorThread},
		{record.DetailUsage, "harness_cpu", &u.HarnessCPU}, {record.DetailUsage, "io_pressure", &u.IOPressure},
		{record.DetailUsage, "others_busy", &u.OthersBusy}, {record.DetailUsage, "system_cpu", &u.SystemCPU},
		{record.DetailUsage, "system_rss_peak", &u.SystemRSSPeak},
	}
}

// nodeFields returns the fields that are stored for each node.
func nodeFields(n *NodeUsage) []field {
	return []field{{kind: record.DetailNodeCPU, at: &n.CPU}, {kind: record.DetailNodeRSS, at: &n.RSSPeak},
		{kind: record.DetailNodeWritten, at: &n.Written}}
}

// Names of details of the kind [record.DetailLoad]; all but loadSeconds are no fields of Load.
const (
	loadSeconds     = "seconds"      // every trial has it
	LoadTLS         = "tls"          // 1: the system was reached over TLS
	loadLinks       = "links"        // number of the runner's link checks, which are the trial's last
	LoadEmulated    = "emulated"     // 1: links between nodes are emulated
	LoadWire        = "wire"         // bytes through the client's interface in all operations
	LoadGaveUp      = "gave_up"      // 1: the trial gave up waiting until objects were durable
	LoadHeld        = "held"         // objects that existed before the trial
	LoadStalls      = "stalls"       // number of times that a node made no progress
	LoadObjects     = "objects"      // in the data set
	LoadSettles     = "settles"      // 1: the system reports when an object is durable
	LoadAttempts    = "attempts"     // in the last session
	LoadNotCompared = "not_compared" // objects not fetched at the end since the set's data was unreadable
)

// Details returns the facts about a trial that are stored as details: the runner's details, and
// the engine's observations. names are the names of the nodes in usage.
func Details(load Load, usage Usage, names []string, tls bool) []record.Detail {
	all := append([]record.Detail{}, load.Details...)
	for i := range usage.Nodes {
		for _, f := range nodeFields(&usage.Nodes[i]) {
			v := *f.at
			if math.IsNaN(v) {
				v = -1
			}
			all = append(all, record.Detail{Kind: f.kind, Name: names[i], Value: v})
		}
	}
	if tls {
		all = append(all, Fact(LoadTLS, 1))
	}
	if n := len(load.Links); n > 0 {
		all = append(all, Fact(loadLinks, float64(n)))
	}
	for _, f := range fields(&load, &usage) {
		// A number of the load that is 0 does not apply.
		if v := *f.at; !math.IsNaN(v) && (v != 0 || f.kind == record.DetailUsage || f.name == loadSeconds) {
			all = append(all, record.Detail{Kind: f.kind, Name: f.name, Value: v})
		}
	}
	return all
}

// restore restores Load, Usage and TLS from a trial's details.
func (in *Measured) restore(details []record.Detail) {
	in.Load.Details = details
	for _, f := range fields(&in.Load, &in.Usage) {
		*f.at = in.Detail(f.kind, f.name)
		if f.kind == record.DetailLoad { // 0: it does not apply
			*f.at = in.LoadDetail(f.name)
		}
	}
	for k, f := range nodeFields(&NodeUsage{}) {
		for i, v := range in.EachDetail(f.kind) {
			if i == len(in.Usage.Nodes) {
				in.Usage.Nodes = append(in.Usage.Nodes, NodeUsage{})
			}
			*nodeFields(&in.Usage.Nodes[i])[k].at = v
		}
	}
	in.TLS = in.LoadDetail(LoadTLS) > 0
}

// Detail returns a number that the trial recorded, or NaN.
func (in *Measured) Detail(kind, name string) float64 {
	for _, d := range in.Load.Details {
		if d.Kind == kind && d.Name == name {
			return d.Value
		}
	}
	return math.NaN()
}

// LoadDetail returns a detail of the load, or 0 if it was not recorded.
func (in *Measured) LoadDetail(name string) float64 {
	if v := in.Detail(record.DetailLoad, name); !math.IsNaN(v) {
		return v
	}
	return 0
}

// EachDetail returns the details of a kind for all nodes in their order; NaN: unknown.
func (in *Measured) EachDetail(kind string) (all []float64) {
	for _, d := range in.Load.Details {
		if d.Kind == kind {
			if d.Value == -1 { // not known
				d.Value = math.NaN()
			}
			all = append(all, d.Value)
		}
	}
	return all
}

// PutLine adds a load line, if there is one, and its ratio to the measured value m[of].
func PutLine(m map[string]float64, key string, line float64, of string) {
	put := Numbers(m)
	if line > 0 {
		put(key, line)
		put(key+"_share", line/m[of]) // infinite, and so omitted, if nothing was measured
	}
}

// Fact returns a detail of the load.
func Fact(name string, v float64) record.Detail {
	return record.Detail{Kind: record.DetailLoad, Name: name, Value: v}
}

//go:embed machine.txt
var machine string

// Machine returns the metrics of the machine as a whole during a trial (during its last session,
// if it has several). Every scenario has them; reports derive from them what limited the trial.
func Machine() []record.Metric { return Definitions(machine, "machine") }

// PutMachine adds the values of these metrics that the engine measured. They are recorded as
// details with the metrics' names.
func PutMachine(in *Measured, put func(string, float64)) {
	for _, m := range Machine() {
		put(m.Key, in.Detail(record.DetailUsage, m.Key))
	}
}

// Definitions returns the metrics of some sets from text, which has lines of the form
// "set|key|name|unit|better|help". Malformed lines panic: the texts are embedded, and tests read
// all of them.
func Definitions(text string, sets ...string) (all []record.Metric) {
	for _, set := range sets {
		for line := range strings.Lines(text) {
			if f := strings.Split(strings.TrimSuffix(line, "\n"), "|"); f[0] == set {
				all = append(all, record.Metric{Key: f[1], Name: f[2], Unit: f[3], Better: record.Better(f[4]), Help: f[5]})
			}
		}
	}
	return all
}
