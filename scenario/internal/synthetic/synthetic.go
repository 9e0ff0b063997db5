// Package synthetic helps tests of scenarios with nodes in memory and virtual time.
package synthetic

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// Virtual runs do in a synctest bubble. It creates record's coder outside of the bubble first.
func Virtual(t *testing.T, do func(t *testing.T)) {
	_, err := record.DecodeBlock(record.AppendBlock(nil, []record.Op{{}}), nil)
	systemtest.Must(t, err)
	synctest.Test(t, do)
}

// MemNode starts a node in memory.
func MemNode(t *testing.T, opt system.Options) *mem.Node {
	t.Helper()
	cluster, err := mem.System{}.Start(t.Context(), system.Deployment{Options: opt})
	systemtest.Must(t, err)
	return cluster.Nodes()[0].(*mem.Node)
}

// Cluster is a cluster of one node.
type Cluster struct {
	Node    system.Node
	Details map[string]string
}

func (c Cluster) Nodes() []system.Node        { return []system.Node{c.Node} }
func (c Cluster) Identity() map[string]string { return c.Details }
func (Cluster) Stop(context.Context) error    { return nil }

// Near reports whether got equals want within the rounding of a histogram.
func Near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }

// Site returns a deployment of one node, called "it".
func Site(mode system.Mode, node system.Node) scenario.Site {
	return scenario.Site{
		Use: experiment.SystemUse{Name: "it", Use: "mem", Mode: string(mode)}, Cluster: Cluster{Node: node}, Seed: 1,
		Limits: Limits(),
		Event:  func(string, string, string, time.Duration) {}, Say: func(string) {},
	}
}

// Limits returns limits of operations: a deadline of 10 minutes, and a stall of 30 seconds.
func Limits() experiment.Limits {
	return experiment.Limits{Deadline: experiment.Duration(10 * time.Minute),
		Stall: experiment.Duration(30 * time.Second)}
}

// Sink returns s with functions that discard their arguments in place of missing ones.
func Sink(s scenario.Sink) scenario.Sink {
	none := func() {}
	all := scenario.Sink{
		Block: func([]byte) error { return nil }, Progress: func(int64, int64) {},
		Marks: func([]record.Mark) error { return nil },
		Event: func(record.Event) error { return nil }, Begin: none, End: none, State: func(scenario.State) {},
	}
	from, to := reflect.ValueOf(s), reflect.ValueOf(&all).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return all
}

// Objects returns the number of objects that a node holds.
func Objects(t *testing.T, n *mem.Node) int {
	t.Helper()
	all, err := system.All(t.Context(), n)
	systemtest.Must(t, err)
	return len(all)
}

// Decode reads YAML into part of a cell, with durations in seconds and rates in bit/s.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Recorded holds the results of a trial.
type Recorded struct {
	Ops    []record.Op
	Marks  []record.Mark
	Events []record.Event
	Load   scenario.Load
	Took   time.Duration
	M      map[string]float64 // metrics

	mu sync.Mutex
}

// Run executes a trial and computes its metrics with the usage, without the system's CPU and memory.
func (r *Recorded) Run(ctx context.Context, s scenario.Scenario, runner scenario.Runner, cell experiment.Cell,
	seed uint64, sink scenario.Sink, usage scenario.Usage) error {
	*r = Recorded{}
	sum := record.NewSummary()
	sink.Epoch = time.Now()
	sink.Block = func(b []byte) error {
		ops, err := record.DecodeBlock(b, nil)
		r.Ops = append(r.Ops, ops...)
		return errors.Join(err, record.Check(ops), sum.Ops(ops))
	}
	sink.Marks = func(m []record.Mark) error { r.Marks = append(r.Marks, m...); return nil }
	sink.Event = func(e record.Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Events = append(r.Events, e)
		return nil
	}
	var err error
	r.Load, err = runner.Trial(ctx, cell, seed, Sink(sink))
	r.Took = time.Since(sink.Epoch)
	usage.SystemCPU, usage.SystemRSSPeak = math.NaN(), math.NaN()
	r.M = s.Measure(scenario.Measured{Cell: cell, Summary: sum, Load: r.Load, Ops: slices.Values(r.Ops), Usage: usage})
	return err
}

// Happened returns the events of a name.
func (r *Recorded) Happened(what string) (all []record.Event) {
	for _, e := range r.Events {
		if e.What == what {
			all = append(all, e)
		}
	}
	return all
}

// Holds checks metrics: polled ones must not be too early, and late by slack at most; a negative
// value in exact means that the metric must be missing.
func (r *Recorded) Holds(t testing.TB, polled, exact map[string]float64, slack time.Duration) {
	t.Helper()
	for key, want := range polled {
		if got, has := r.M[key]; !has || got < want-1e-6 || got > want+slack.Seconds() {
			t.Errorf("%s: %.4f (%v), want %.4f, and %v more at most", key, got, has, want, slack)
		}
	}
	for key, want := range exact {
		if got, has := r.M[key]; has != (want >= 0) || has && math.Abs(got-want) > 1e-6*max(1, want) {
			t.Errorf("%s: %v (%v), want %v", key, got, has, want)
		}
	}
}
