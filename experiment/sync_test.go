package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/internal/words"
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

// Drawn rates have the specified distribution, and the first peers have the same rates whatever the
// number of peers.
func TestSpeedsAreDrawn(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		v                           Speeds
		median, lowest, highest, sd float64 // sd: of the logarithms
	}{
		{Speeds{Lognormal: 8e6, Spread: 3}, 8e6, 8e6 / math.Pow(3, 3.1), 8e6 * math.Pow(3, 3.1), math.Log(3)},
		{Speeds{Lognormal: 8e6, Spread: 1}, 8e6, 8e6, 8e6, 0},
		{Speeds{List: []BitRate{1e6, 5e6, 25e6}}, 5e6, 1e6, 25e6, math.Log(5) * math.Sqrt(2.0/3)},
	} {
		v, want, text := c.v, c, c.v.String()
		draw := func(n int) []BitRate {
			r := rand.New(rand.NewPCG(1, 2))
			return v.Draw(n, r.Float64)
		}
		rates := draw(n)
		if !slices.Equal(rates[:7], draw(7)) {
			t.Errorf("%s: seven peers have not what the first of many have", text)
		}
		logs := make([]float64, n)
		for i, r := range rates {
			logs[i] = math.Log(float64(r))
		}
		if sd := stat.StdDev(logs, nil); want.sd > 0 && math.Abs(sd/want.sd-1) > 0.03 {
			t.Errorf("%s: standard deviation of the logarithms %g, want %g", text, sd, want.sd)
		}
		slices.Sort(rates)
		if m := float64(rates[n/2]); math.Abs(m/want.median-1) > 0.05 {
			t.Errorf("%s: median %g, want %g", text, m, want.median)
		}
		if lowest, highest := float64(rates[0]), float64(rates[n-1]); lowest < 0.999*want.lowest ||
			highest > 1.001*want.highest || highest < 0.8*want.highest {
			t.Errorf("%s: from %g to %g, want %g to %g", text, lowest, highest, want.lowest, want.highest)
		}
	}
	for _, r := range (Speeds{}).Draw(3, func() float64 { t.Error("asked for chance"); return 0 }) {
		if r != 0 {
			t.Errorf("link: %v", r)
		}
	}
}

// Measured sizes are below the estimates: the chain's bytes on the wire and the bytes of its store
// at the end of a sync.
func TestStoreBytes(t *testing.T) {
	for _, c := range []struct {
		what         string
		chain, store float64
	}{
		{"10,000 × 10 v2 with an index of all addresses", 55.9e6, 86e6 + 264e6 + 8e6},
		{"2000 × 10 v1 with an index of all addresses", 11.6e6, 117e6},
		{"3000 × 10 v1, consensus alone", 17e6, 86e6},
		{"an empty store", 0, 1 << 20},
	} {
		if got := StoreBytes(c.chain); got < c.store {
			t.Errorf("%s: %s are estimated, %s were measured", c.what, words.Bytes(got), words.Bytes(c.store))
		}
	}
	// Each further block fits, too, not only the first ones.
	if each := StoreBytes(2) - StoreBytes(1); each < 117/11.6 {
		t.Errorf("%g bytes of a store for each of the chain", each)
	}
	if StoreBytes(1e6) >= RAMDiskBytes(StoreBytes(1e6)) {
		t.Error("a RAM disk has no room beyond the store")
	}
}
