package experiment

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const following = `
scenario: sync
systems: [ledger]
sync:
  blocks: 1000
  transactions: 10
  peers: 4
  vary:
    sync_interval: [5s, 500ms]
`

// A varied option is a factor like any other: in cells, on axes, in conditions and on the command
// line.
func TestOptionsAreFactors(t *testing.T) {
	p := mustPlan(t, following, "sync.vary.subscriber=full,none", "sync.vary.cache=64MiB,1GiB",
		"sync.vary.batch=[10, 100]", "sync.vary.fsync=true,false",
		`where=["sync.vary.sync_interval <= 500ms || sync.vary.batch == 10", "2 * sync.vary.cache > 128MiB || sync.vary.fsync == true"]`)
	kept := 0
	for _, c := range p.Cells {
		v := c.Sync.Options
		f := func(name string) Factor {
			i := slices.IndexFunc(c.Factors, func(f Factor) bool { return f.Path == "sync.vary."+name })
			if i < 0 || c.Factors[i].Label != name {
				t.Fatalf("%s: no factor %s: %+v", c.ID, name, c.Factors)
			}
			return c.Factors[i]
		}
		if g := f("sync_interval"); g.Value != v["sync_interval"] || g.Unit != "s" ||
			g.Number != map[string]float64{"5s": 5, "500ms": 0.5}[g.Value] {
			t.Errorf("%+v of %v", g, v)
		}
		if g := f("cache"); g.Unit != "B" || fmt.Sprint(int64(g.Number)) != v["cache"] ||
			g.Value != map[string]string{"67108864": "64MiB", "1073741824": "1GiB"}[v["cache"]] {
			t.Errorf("%+v of %v", g, v)
		}
		for name, unit := range map[string]string{"batch": "1", "subscriber": ""} {
			if g := f(name); g.Unit != unit || g.Value != v[name] {
				t.Errorf("%+v of %v", g, v)
			}
		}
		if v["sync_interval"] == "5s" && v["batch"] != "10" || v["cache"] == "67108864" && v["fsync"] == "false" {
			t.Errorf("%s: %v is against the conditions", c.ID, v)
		}
		kept++
	}
	if kept != 3*3*2 {
		t.Errorf("%d cells of 18", kept)
	}
	// The default remains that of the system's options.
	if w := p.Experiment.Systems[0].With; w["sync_interval"] != "5s" || w["subscriber"] != "none" {
		t.Errorf("%v", w)
	}
}

// A set of options is one factor; its name is the value.
func TestSetsOfOptionsAreOneFactor(t *testing.T) {
	p := mustPlan(t, following, "sync.vary={waits: [{default: {sync_interval: 5s, blocks_timeout: 2m}}, {short: "+
		"{blocks_timeout: 5s, sync_interval: 500ms}}], subscriber: [full, none]}",
		"where=[sync.vary.waits != short || sync.vary.subscriber == none]")
	want := []string{"full default map[blocks_timeout:2m0s subscriber:full sync_interval:5s]",
		"none default map[blocks_timeout:2m0s subscriber:none sync_interval:5s]", "none short map[blocks_timeout:5s " +
			"subscriber:none sync_interval:500ms]"}
	for i, c := range p.Cells {
		if got := fmt.Sprint(c.Factors[1].Value, " ", c.Factors[2].Value, " ", c.Sync.Options); got != want[i] {
			t.Errorf("cell %d: %s, want %s", i, got, want[i])
		}
	}
	if len(p.Cells) != len(want) {
		t.Errorf("%d cells", len(p.Cells))
	}
	// Names that are all durations are sorted.
	p = mustPlan(t, following, "sync.vary={waits: [{2m: {blocks_timeout: 2m}}, {500ms: {blocks_timeout: 500ms}}]}",
		"where=[sync.vary.waits < 1m]")
	if len(p.Cells) != 1 || p.Cells[0].Sync.Options["blocks_timeout"] != "500ms" {
		t.Errorf("%+v", p.Cells)
	}
}

func TestPollsOfASync(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want time.Duration
	}{
		{[]string{"sync.poll=70ms"}, 70 * time.Millisecond},
		{[]string{"sync.blocks=2"}, 32 * time.Millisecond}, // of 6.5 s
		{[]string{"link.rate=1kbit"}, 500 * time.Millisecond},
		{[]string{"link.rate=10Mbit", "sync.blocks=2000", "sync.vary="}, 80 * time.Millisecond}, // of 16.1 s
	} {
		if got := mustPlan(t, following, c.set...).Cells[0].PollEvery(); got != c.want {
			t.Errorf("%s: %v, want %v", c.set, got, c.want)
		}
	}
}
