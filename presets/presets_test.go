package presets_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/presets"
	systems "github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func plan(t *testing.T, name string, set ...string) *experiment.Plan {
	t.Helper()
	p, err := presets.Get(name)
	must(t, err)
	set = slices.DeleteFunc(set, func(arg string) bool { return arg == "" })
	e, err := experiment.Parse(name+".yaml", p.Source, set, engine.Catalog(systems.All()))
	must(t, err)
	planned, err := e.Plan()
	must(t, err)
	return planned
}

var must = systemtest.Must

// grid returns all combinations of one text from each list.
func grid(lists ...[]string) map[string]bool {
	if len(lists) == 0 {
		return map[string]bool{"": true}
	}
	all := map[string]bool{}
	for rest := range grid(lists[1:]...) {
		for _, first := range lists[0] {
			all[strings.TrimSpace(first+" "+rest)] = true
		}
	}
	return all
}

// wantCells compares the cells of a plan by name; each must occur once.
func wantCells(t *testing.T, p *experiment.Plan, want map[string]bool, name func(experiment.Cell) string) {
	t.Helper()
	got := map[string]bool{}
	for _, c := range p.Cells {
		got[name(c)] = true
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != len(p.Cells) {
		t.Errorf("%d cells, (-want +got):\n%s", len(p.Cells), d)
	}
}

func TestList(t *testing.T) {
	var names []string
	for _, p := range presets.List() {
		names = append(names, p.Name)
		if p.Summary == "" || strings.Contains(p.Summary, "\n") || strings.HasPrefix(p.Summary, "#") {
			t.Errorf("%s: summary %q", p.Name, p.Summary)
		}
		if !bytes.HasPrefix(p.Source, []byte("# "+p.Name+": ")) {
			t.Errorf("%s does not begin with its name", p.Name)
		}
		if w := plan(t, p.Name).Warnings(); len(w) > 0 {
			t.Errorf("%s: %s", p.Name, w)
		}
	}
	if !slices.IsSorted(names) || len(names) < 10 {
		t.Errorf("presets are %s", names)
	}
	if _, err := presets.Get("slowstart"); err == nil || !strings.Contains(err.Error(), "slowstart") {
		t.Errorf("got %v", err)
	}
}

// The defaults of all options of all systems are values of the options' types.
func TestDefaults(t *testing.T) {
	for _, s := range systems.All() {
		src := "scenario: overhead\ndata: {size: 1kB}\nsystems: [" + s.Info().Name + "]\n"
		_, err := experiment.Parse("defaults.yaml", []byte(src), nil, engine.Catalog(systems.All()))
		if err != nil && strings.Contains(err.Error(), "the default of") {
			t.Error(err)
		}
	}
}

// The plan is the study's whole grid, and nothing else.
func TestBoostRetrieval(t *testing.T) {
	p := plan(t, "boost-retrieval")
	for _, c := range p.Cells {
		r := c.Retrieve
		if c.Link.Delay.Seconds() != 0.04 {
			t.Errorf("%s: delay %s", c.ID, c.Link.Delay)
		}
		if r.Requests < int64(r.Concurrency) || r.Duration != 0 || r.Receive != "verify" {
			t.Errorf("%s: %+v", c.ID, r)
		}
		if c.Estimate.Operation > p.Experiment.Limits.Deadline.Seconds()/2 {
			t.Errorf("%s: an operation takes %.0f s, too near its deadline", c.ID, c.Estimate.Operation)
		}
	}
	stores, rates := []string{"nginx", "boxo"}, []string{"1Gbit", "10Gbit"}
	want := grid(stores, rates, []string{"0B"}, []string{"1", "8", "16", "32", "64"})
	maps.Copy(want, grid(stores, rates, []string{"1MiB", "10MiB", "100MiB"}, []string{"10", "100", "1000"}))
	wantCells(t, p, want, func(c experiment.Cell) string {
		return fmt.Sprintf("%s %s %s %d", c.System, c.Link.Rate, c.Retrieve.Range, c.Retrieve.Concurrency)
	})
}

// The plan asks the study's question for a range of sizes and round trips, without what a system
// cannot do.
func TestTahoeOverhead(t *testing.T) {
	p := plan(t, "tahoe-overhead")
	delays, sizes, operations := map[string]map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
	for _, c := range p.Cells {
		o := c.Overhead
		if delays[c.System] == nil {
			delays[c.System], operations[c.System] = map[string]bool{}, map[string]bool{}
		}
		delays[c.System][c.Link.Delay.String()] = true
		sizes[c.Data.Size.String()] = true
		operations[c.System][o.Operation] = true
		switch {
		case c.System == "tahoe" && o.Connections != "keep", c.System == "scp" && o.Connections != "fresh":
			t.Errorf("%s: %s with connections %s", c.ID, c.System, o.Connections)
		case o.Concurrency > 1 && (o.Operation != "put" || c.Link.Delay != 0):
			t.Errorf("%s: %+v", c.ID, o)
		case c.Estimate.Operation > p.Experiment.Limits.Deadline.Seconds()/2:
			t.Errorf("%s: an operation takes %.0f s, too near its deadline", c.ID, c.Estimate.Operation)
		}
	}
	for system, n := range map[string]int{"tahoe": 5, "sftp": 4, "scp": 2, "nginx": 4} {
		if len(operations[system]) != n || len(delays[system]) != 5 {
			t.Errorf("%s: operations %v, delays %v", system, operations[system], delays[system])
		}
	}
	if !sizes["55B"] || !sizes["56B"] || len(sizes) != 8 || p.Blocks < 6 ||
		p.Experiment.Baseline != "sftp" {
		t.Errorf("sizes %v, %d blocks, baseline %s", sizes, p.Blocks, p.Experiment.Baseline)
	}
}

// The three load tests of the study, with its numbers, its five uploads at a time, its minute and
// its floor.
func TestSia(t *testing.T) {
	for name, want := range map[string]struct {
		objects   int
		low, high float64 // bytes in all
		runtime   float64 // seconds of exit.max_runtime
	}{
		"sia-worst-case": {48358, 48358, 48358, 0},
		"sia-real-data":  {2626, 4.25 * (1 << 40), 4.35 * (1 << 40), 14 * 86400},
		"sia-best-case":  {262145, 9.99 * (1 << 40), 10.01 * (1 << 40), 14 * 86400},
	} {
		p := plan(t, name)
		if len(p.Cells) != 1 || p.Blocks != 1 || p.Warmup != 0 || p.Experiment.Systems[0].Mode != "attach" ||
			p.Experiment.Baseline != "none" {
			t.Errorf("%s: %d cells, %d blocks, %+v", name, len(p.Cells), p.Blocks, p.Experiment.Systems)
		}
		c, x := p.Cells[0], p.Experiment.Exit
		if c.Data.Objects != want.objects || c.Estimate.Bytes < want.low || c.Estimate.Bytes > want.high ||
			c.Estimate.Bound != experiment.AtLeast {
			t.Errorf("%s: %+v, %+v", name, c.Data, c.Estimate)
		}
		if u := c.Upload; u.Concurrency != 5 || u.Retries != 3 || u.Poll.Seconds() != 60 || u.Backoff.Seconds() != 1 ||
			u.Need.Contracts != 50 || u.Until != "durable" {
			t.Errorf("%s: %+v", name, u)
		}
		if x.MaxSpend != "5000" || x.Floor == nil || x.Floor.Bytes != 1_350_000_000 ||
			x.Floor.Window.Seconds() != 3600 || x.MaxRuntime.Seconds() != want.runtime {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// The plan is the study's whole grid, the same for all swarms, and nothing else.
func TestCodexDissemination(t *testing.T) {
	p := plan(t, "codex-dissemination")
	for _, c := range p.Cells {
		d := c.Disseminate
		if !d.Join.Together() || d.Stay != experiment.Forever || d.Faults != nil || d.SeederSets != 2 ||
			c.Data.Objects != 1 {
			t.Errorf("%s: %+v", c.ID, d)
		}
		if least := c.Estimate.Operation; least > p.Experiment.Limits.Deadline.Seconds()/4 {
			t.Errorf("%s: a leecher takes %.0f s, too near its deadline", c.ID, least)
		}
	}
	if len(p.Experiment.Gates) != 2 {
		t.Errorf("gates %q", p.Experiment.Gates)
	}
	swarms := strings.Fields("1/2 1/8 2/8 4/8 1/16 2/16 4/16 8/16 1/32 2/32 4/32 8/32 16/32")
	want := grid([]string{"deluge", "bittorrent", "boxo", "codex"}, []string{"100MiB", "1GiB", "5GiB"}, swarms)
	maps.Copy(want, grid([]string{"fanout"}, []string{"100MiB"}, swarms))
	wantCells(t, p, want, func(c experiment.Cell) string {
		return fmt.Sprintf("%s %s %d/%d", c.System, c.Data.Size, c.Disseminate.Seeders, c.Disseminate.Nodes)
	})
	if p.Blocks != 10 || p.Experiment.Baseline != "deluge" {
		t.Errorf("%d blocks, baseline %s", p.Blocks, p.Experiment.Baseline)
	}
	if days := p.Estimate.Seconds / 86400; days < 11 || days > 13 {
		t.Errorf("its header says twelve days, the plan %.1f", days)
	}
}

// The plan has the study's three steps, all their combinations, and what its header promises.
func TestSiaSync(t *testing.T) {
	p := plan(t, "sia-sync")
	waits := 0.0
	for _, c := range p.Cells {
		s := c.Sync
		if s.Peers != 4 || s.Trouble.String() != "1 silent" || s.Form != "v2" || !s.Replay {
			t.Errorf("%s: %+v", c.ID, s)
		}
		if c.Estimate.Operation+60 > p.Experiment.Limits.Deadline.Seconds()/2 {
			t.Errorf("%s: a sync takes %.0f s and a timeout, too near its deadline", c.ID, c.Estimate.Operation)
		}
		wait := 30.0 // for headers, a constant of the library
		if s.Options["send_block_timeout"] == "1m0s" {
			wait = 60
		}
		waits += wait * float64(p.Blocks)
	}
	want := grid([]string{"disk", "ram"}, []string{"full", "none"}, []string{"1m0s 2m0s", "2s 5s"})
	wantCells(t, p, want, func(c experiment.Cell) string {
		o := c.Sync.Options
		return strings.Join([]string{c.Sync.Storage, o["subscriber"], o["send_block_timeout"],
			o["send_blocks_timeout"]}, " ")
	})
	// The default, with which all are compared, is the first.
	first := p.Cells[0]
	if first.Sync.Storage != "disk" ||
		first.Sync.Options["subscriber"] != "full" || first.Sync.Options["send_block_timeout"] != "1m0s" ||
		p.Blocks != 3 {
		t.Errorf("%d cells, first %+v, %d blocks", len(p.Cells), first.Sync, p.Blocks)
	}
	if minutes := (p.Estimate.Seconds + waits) / 60; minutes < 20 || minutes > 30 {
		t.Errorf("its header says nearly half an hour, the plan and the timeouts %.0f minutes", minutes)
	}
}

// Headers promise numbers of cells, durations and baselines, for the preset as it is and with the
// --set arguments that they mention.
func TestPromises(t *testing.T) {
	const small = "upload.need.contracts=0; upload.poll=1s; upload.price=; exit=; "
	for _, c := range []struct {
		name, sets string
		cells      int
		most       float64 // seconds; 0: any time
		baseline   string
	}{
		{"quickstart", "", 9, 115, "static"},
		{"boost-retrieval", "link.rate=1Gbit; retrieve.range=1MiB,10MiB; retrieve.concurrency=10,100; " +
			"retrieve.bytes=1GiB; repetitions=3", 8, 1800, "nginx"},
		{"boost-retrieval", "systems=boost; systems.boost.with.url=http://provider:7777; " +
			"systems.boost.with.list=pieces.txt", 14, 0, "none"},
		// An attached provider has its own link: half as many cells as nginx at two rates.
		{"boost-retrieval", "systems=nginx,boost; systems.boost.with.url=http://provider:7777; " +
			"systems.boost.with.list=pieces.txt", 28 + 14, 0, "nginx"},
		{"tahoe-overhead", "systems=tahoe,nginx; overhead.operation=put,get; data.size=1B,56B,10kB,1MB; " +
			"link.delay=2.5ms,20ms; repetitions=3", 48, 1200, "nginx"},
		{"tahoe-overhead", "link.rate=624kbit; data.size=1B,55B,56B,1kB,10kB,100kB,1MB", 826, 36000, "sftp"},
		{"tahoe-objects", "", 2, 0, "sftp"},
		{"tahoe-objects", "overhead.objects=200; overhead.count=20", 2, 600, "sftp"},
		{"tahoe-objects", "systems=sftp", 1, 0, "sftp"},
		{"sia-worst-case", small + "systems=tahoe; data.objects=500; data.size=56B", 1, 60, "none"},
		{"sia-worst-case", small + "systems=s3; data.objects=500", 1, 60, "none"},
		{"sia-best-case", small + "systems=s3; data.objects=25", 1, 60, "none"},
		{"sia-real-data", "data={directory: /srv/films, copies: 3}", 1, 0, "none"},
		{"codex-dissemination", "data.size=100MiB", 65, 8.5 * 3600, "deluge"},
		{"codex-dissemination", "systems=bittorrent,boxo,fanout; gates=; data.size=20MiB; disseminate.nodes=2,8; " +
			"repetitions=6", 12, 900, "fanout"},
		{"codex-dissemination", "systems=deluge,bittorrent,boxo,fanout; systems.deluge.with.transport=both; " +
			"link.rate=1Gbit", 3*39 + 13, 0, "deluge"},
		{"codex-dissemination", "disseminate.seeders=1; " +
			"disseminate.faults=[none, [{crash: seeders, at: 50%, for: 1m}]]", 2 * 4 * (4*3 + 1), 0, "deluge"},
		{"sia-sync", "sync.blocks=1000; repetitions=3", 8, 300, "none"},
		{"sia-sync", "sync.form=v1", 8, 0, "none"},
		{"sia-sync", "sync.faults=[none, [{crash: node, at: 50%, for: 2s}]]", 16, 0, "none"},
		{"sia-timeouts", "", 4, 1200, "none"},
		{"sia-timeouts", "sync.speeds=[{lognormal: 500kbit, spread: 1.5}, {lognormal: 500kbit, spread: 3}, " +
			"{lognormal: 500kbit, spread: 10}]", 12, 0, "none"},
	} {
		p := plan(t, c.name, strings.Split(c.sets, "; ")...)
		if len(p.Cells) != c.cells || p.Experiment.Baseline != c.baseline ||
			c.most > 0 && p.Estimate.Seconds > c.most {
			t.Errorf("%s %s: %d cells, %.0f s, baseline %s", c.name, c.sets, len(p.Cells), p.Estimate.Seconds,
				p.Experiment.Baseline)
		}
	}
}

// A factor called timeouts changes no other options, so that the effect of another timer is not
// attributed to timeouts.
func TestTimeoutsAreTimeouts(t *testing.T) {
	for name, factor := range map[string]string{"sia-sync": "timeouts", "sia-timeouts": "timeout"} {
		p := plan(t, name)
		levels := p.Experiment.Sync.Vary[factor].Levels
		for _, l := range levels {
			for option := range l.Options {
				if !strings.HasSuffix(option, "_timeout") {
					t.Errorf("%s: %s changes %s as well", name, factor, option)
				}
			}
		}
		if len(levels) < 2 {
			t.Errorf("%s has %d levels of %s", name, len(levels), factor)
		}
		// Timeouts matter in this library only if they can occur at the end of a batch of 10,000
		// blocks with an unanswered request, and if no stall is reported before they occur.
		for _, c := range p.Cells {
			if c.Sync.Blocks <= 10_000 || !strings.Contains(c.Sync.Trouble.String(), "silent") {
				t.Errorf("%s: %d blocks, trouble %s: no timeout decides about anything", c.ID, c.Sync.Blocks,
					c.Sync.Trouble)
			}
		}
		if p.Experiment.Limits.Stall.Seconds() <= 60 {
			t.Errorf("a trial is called stalled after %s, while a request has a minute", p.Experiment.Limits.Stall)
		}
	}
}
