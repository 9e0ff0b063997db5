package experiment

import (
	"strings"
	"testing"
	"time"
)

// A plan lists problems to consider before the run.
func TestWarnings(t *testing.T) {
	const (
		burst = "scenario: retrieve\nsystems: [nginx]\nlink: {rate: 1Gbit, delay: 40ms}\ndata: {size: 1GiB}\n" +
			"retrieve: {per_worker: 1, range: 100MiB, concurrency: [10, 1000]}\n"
		held = "scenario: retrieve\nsystems: [nginx, boxo]\ndata: {size: 1MiB}\nretrieve: {concurrency: [1, 8], " +
			"requests: 100}\ngates: [p95(ttfb) < 200ms, success >= 98% where concurrency == 8, no worse than BASE by " +
			"5%]\n"
		few = "with 4 repetitions no gate can be decided"
	)
	for _, c := range []struct {
		file string
		set  []string
		want string // empty: no warning
	}{
		// The study's flaw: with a 60 s deadline a fair-shared burst cannot succeed.
		{burst, []string{"limits.deadline=60s"}, "in 1 cell (c002) an operation is expected to take longer than its " +
			"deadline"},
		{burst, []string{"limits.deadline=1h"}, ""},
		{held, nil, ""},
		{held, []string{"repetitions=4"}, few},
		{held, []string{"exit.max_runtime=10s"}, "longer than exit.max_runtime (10s)"},
		{"scenario: upload\nsystems: [nginx]\ndata: {size: 1MB}\ngates: [success >= 98%]\n", nil,
			"a load test is one trial of each cell, so no gate can be decided"},
		{following, nil, ""},
		{following, []string{"link.rate=1kbit", "sync.vary="}, "its deadline"},
		{swarm, nil, ""},
		{swarm, []string{"data.size=10GB"}, "its deadline"},
	} {
		got := strings.Join(warningsOf(mustPlan(t, c.file, c.set...)), "; ")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}

// Settings of cells are written as in the file, whatever their type, so that they can be compared with levels.
func TestSettings(t *testing.T) {
	c := Cell{Link: Link{Rate: 1e7, Loss: 0.01, Delay: Duration(40 * time.Millisecond)},
		Sync: &Sync{Faults: Faults{{Cut: "node", At: Moment{Share: 0.5}, For: Duration(2 * time.Second)}},
			Options: map[string]string{"batch": "10"}}}
	got := c.Settings()
	for path, want := range map[string]string{"link.rate": "10Mbit", "link.loss": "1%", "link.delay": "40ms",
		"link.queue": "auto", "sync.faults": "cut node at 50% for 2s", "sync.options.batch": "10"} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
}
