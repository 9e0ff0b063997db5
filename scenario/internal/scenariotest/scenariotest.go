// Package scenariotest helps the tests of scenarios: nodes in memory, and time that passes at once.
package scenariotest

import (
	"context"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// Virtual runs do in a bubble, with record's coder made outside of it.
func Virtual(t *testing.T, do func(t *testing.T)) {
	if _, err := record.DecodeBlock(record.AppendBlock(nil, []record.Op{{}}), nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, do)
}

// MemNode starts a node in memory.
func MemNode(t *testing.T, opt system.Options) *mem.Node {
	t.Helper()
	cluster, err := mem.System{}.Start(t.Context(), system.Deployment{Options: opt})
	if err != nil {
		t.Fatal(err)
	}
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

// Replaced is a cluster with another node in its place.
type Replaced struct {
	system.Cluster
	Node system.Node
}

func (c Replaced) Nodes() []system.Node { return []system.Node{c.Node} }

// Near allows for what a histogram rounds.
func Near(got, want float64) bool { return math.Abs(got-want) <= 0.002*want }

// Links are the links of nodes in memory after a change; its rates are in bit/s.
func Links(c scenario.NetworkChange) mem.Links {
	links := mem.Links{Up: map[int]float64{}, Down: map[int]float64{}, Apart: c.Apart}
	for i, r := range c.Rates {
		if r.Up > 0 {
			links.Up[i] = r.Up / 8
		}
		if r.Down > 0 {
			links.Down[i] = r.Down / 8
		}
	}
	return links
}

// Site is a deployment of one node, called "it".
func Site(mode system.Mode, node system.Node) scenario.Site {
	return scenario.Site{
		Use: experiment.SystemUse{Name: "it", Use: "mem", Mode: string(mode)}, Cluster: Cluster{Node: node}, Seed: 1,
		Limits: Limits(),
		Event:  func(string, string, string, time.Duration) {}, Say: func(string) {},
	}
}

// Limits of operations: 10 minutes, and 30 seconds without a byte.
func Limits() experiment.Limits {
	return experiment.Limits{Deadline: experiment.Duration(10 * time.Minute),
		Stall: experiment.Duration(30 * time.Second)}
}

// Sink is s with functions that keep nothing in place of those that it lacks.
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

// Objects counts the objects that a node holds.
func Objects(t *testing.T, n *mem.Node) int {
	t.Helper()
	all, err := n.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

var faultWords = regexp.MustCompile(`^(crash|cut|rate (\d+)Mbit(?: of)?)(?: ([0-9.]+%?)(?: of)?)?` +
	`(?: (seeder|leecher|node|peer)(s?))? ` +
	`at (\S+)(?: for (\S+))?( without data)?$`)

// Faults are those that records call so: "crash 2 seeders at 50% for 10s".
func Faults(text string) (all experiment.Faults) {
	for part := range strings.SplitSeq(text, "; ") {
		if part == "none" {
			continue
		}
		m := faultWords.FindStringSubmatch(part)
		f, who := experiment.Fault{WithoutData: m[8] != ""}, m[4]+m[5]
		if m[3] != "" {
			who = m[4] + "s"
			must(f.Count.UnmarshalText([]byte(m[3])))
		}
		switch m[1] {
		case "crash":
			f.Crash = who
		case "cut":
			f.Cut = who
		default:
			rate, err := strconv.Atoi(m[2])
			must(err)
			f.Rate, f.Whose = 1e6*experiment.BitRate(rate), who
		}
		must(f.At.UnmarshalText([]byte(m[6])))
		if m[7] != "" {
			lasts, err := time.ParseDuration(m[7])
			must(err)
			f.For = experiment.Duration(lasts)
		}
		all = append(all, f)
	}
	return all
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
