package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/sync"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// climbing is somebody's node that is on its way to the end of its chain.
type climbing struct {
	chains
	asked system.Deployment
	since time.Time
}

const climbTime = time.Second

func (c *climbing) Info() system.Info {
	i := c.chains.Info()
	i.Modes = []system.Mode{system.Attach}
	return i
}

// Attach gives a follower only to whoever asks for one, as siad does.
func (c *climbing) Attach(_ context.Context, d system.Deployment) (system.Cluster, error) {
	if c.asked, c.since = d, time.Now(); !d.Follow {
		return nil, errors.New("chains: it has no renter")
	}
	return c, nil
}

func (c *climbing) Nodes() []system.Node         { return []system.Node{c} }
func (c *climbing) Identity() map[string]string  { return map[string]string{"version": "1"} }
func (c *climbing) Stop(context.Context) error   { return nil }
func (c *climbing) Processes() []testbed.Process { return nil }
func (c *climbing) Halt(context.Context) error   { return nil }
func (c *climbing) Kill(context.Context) error   { return errors.New("chains: only watched") }
func (c *climbing) Serve(context.Context, system.ServeTask) error {
	return errors.New("chains: only watched")
}
func (c *climbing) Follow(context.Context, system.FollowTask) error {
	return errors.New("chains: only watched")
}
func (c *climbing) Address(context.Context) (string, error) { return "127.0.0.1:1", nil }

func (c *climbing) Following(context.Context) (system.Following, error) {
	h := 100 + int64(min(1, time.Since(c.since).Seconds()/climbTime.Seconds())*100)
	return system.Following{Height: h, Tip: fmt.Sprint(h), Target: -1, Indexed: -1, Synced: h == 200, Connected: 1, Commits: -1, TimedOut: -1, Failed: -1}, nil
}

// An attached node is asked for to be followed, and watched until it is in sync.
func TestAttachedSync(t *testing.T) {
	t.Setenv(testbed.CacheVariable, filepath.Join(t.TempDir(), "cache"))
	e, err := experiment.Parse("test.yaml", []byte("scenario: sync\nsystems: [{use: chains, mode: attach}]\nsync: {poll: 50ms}\nlimits: {others: none, machine: none}\nskip: [machine]\n"), nil,
		experiment.Catalog{{Name: "chains", Modes: []string{"attach"}, Follows: true}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	c, dir := &climbing{}, filepath.Join(t.TempDir(), "run")
	res, err := Run(t.Context(), Config{Plan: plan, Systems: []system.System{c}, Scenario: sync.Scenario{}, Dir: dir})
	if err != nil || res.Trials != 1 || res.Failed > 0 || !c.asked.Follow || len(c.asked.Hosts) > 0 {
		t.Fatalf("%+v, %v; attached with %+v", res, err, c.asked)
	}
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	trials, err := rec.Trials()
	if err != nil || len(trials) != 1 {
		t.Fatal(trials, err)
	}
	if m := trials[0].Metrics; m["ok_rate"] != 1 || !(m["sync_time"] > 0) || !(m["first_block"] <= m["sync_time"]) {
		t.Errorf("%v, %q", m, trials[0].Notes)
	}
}
