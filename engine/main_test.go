package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
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
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	return m.Run()
}

// must ends a test at an error that it is not about.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runPlan is Run of a configuration that may have no Progress.
func runPlan(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Progress == nil {
		cfg.Progress = silent{}
	}
	return Run(ctx, cfg)
}

type silent struct{}

func (silent) Start()                                {}
func (silent) Phase(string)                          {}
func (silent) Note(string)                           {}
func (silent) Begin(int, int, experiment.Cell, int)  {}
func (silent) Load(int64, int64)                     {}
func (silent) State(scenario.State, experiment.Cell) {}
func (silent) End(record.Trial, experiment.Cell)     {}
