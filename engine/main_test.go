package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// The test binary serves as plimsoll's helpers of the testbed, as the nodes of a
// swarm, and as a run that is killed, too.
func TestMain(m *testing.M) {
	handled, err := testbed.ServeNode(context.Background(), os.Args[1:])
	if !handled && len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == "bittorrent" {
		handled, err = true, bittorrent.System{}.Serve(context.Background(), os.Args[3:], os.Stdout, os.Stderr)
	}
	if !handled && len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == "follower" {
		handled, err = true, follower(os.Args[3:])
	}
	if len(os.Args) == 4 && os.Args[1] == "sync-victim" {
		handled, err = true, syncVictim(os.Args[2], os.Args[3])
	}
	if handled {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Record's coders belong to all tests: not to the first bubble that uses them.
	if _, err := record.DecodeBlock(record.AppendBlock(nil, []record.Op{{}}), nil); err != nil {
		panic(err)
	}
	os.Exit(ownCache(m))
}

// ownCache runs the tests with caches that are not the user's, several at a time: they
// wait more than they compute.
func ownCache(m *testing.M) int {
	dir, err := os.MkdirTemp("", "plimsoll-engine-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv(testbed.CacheVariable, dir)
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	return m.Run()
}

var must = systemtest.Must

// slow marks a test of some seconds, which waits more than it computes.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
}

// planOf is the plan of an experiment on the systems of these tests, without a warm-up and whatever the machine does.
func planOf(src string, set ...string) (*experiment.Plan, error) {
	catalog := Catalog([]system.System{mem.System{}, bittorrent.System{}, chains{}})
	catalog[0].Modes = []string{"start", "attach"}
	set = append([]string{"warmup=0", "limits.others=none", "limits.machine=none", "skip=machine"}, set...)
	e, err := experiment.Parse("test.yaml", []byte(src), set, catalog)
	if err != nil {
		return nil, err
	}
	return e.Plan()
}

func mustPlan(t *testing.T, src string, set ...string) *experiment.Plan {
	t.Helper()
	plan, err := planOf(src, set...)
	must(t, err)
	return plan
}

// configOf is a run of one system.
func configOf(t *testing.T, plan *experiment.Plan, sys system.System, s scenario.Scenario) Config {
	t.Helper()
	return Config{Plan: plan, Systems: []system.System{sys}, Scenario: s, Progress: silent,
		Dir: filepath.Join(t.TempDir(), "run")}
}

func silent(Event) {}

// recorded is what the directory of a run holds.
type recorded struct {
	trials []record.Trial
	events []record.Event
	links  []record.LinkCheck
	meta   map[string]string
}

func readRun(t *testing.T, dir string) (all recorded) {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	all.meta = r.Meta()
	all.trials, err = r.Trials()
	must(t, err)
	all.events, err = r.Events()
	must(t, err)
	all.links, err = r.Links()
	must(t, err)
	return all
}
