package experiment

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// A plan depends on values, but not on the order of keys or the spelling of values.
func TestPlanIsCanonical(t *testing.T) {
	a := mustPlan(t, "scenario: retrieve\nsystems: [nginx]\nlink: {rate: 1Gbit, delay: 40ms}\ndata: {size: "+
		"1MiB}\nretrieve: {requests: 10, concurrency: [1, 2]}\n")
	b := mustPlan(t, "# the same\nretrieve:\n  concurrency: [1, 2]\n  requests: 10\nrepetitions: {max: 6}\nsystems: "+
		"[{use: nginx, mode: start, with: {workers: 2}}]\ndata: {size: 1024KiB, objects: 1}\nscenario: "+
		"retrieve\nlink: {delay: 0.04s, rate: 1000Mbps}\nbaseline: nginx\n")
	if a.Hash != b.Hash {
		x, _ := a.Marshal()
		y, _ := b.Marshal()
		t.Errorf("plans differ:\n%s\n%s", x, y)
	}
	c := mustPlan(t, "scenario: retrieve\nsystems: [nginx]\nlink: {rate: 1Gbit, delay: 41ms}\ndata: {size: "+
		"1MiB}\nretrieve: {requests: 10, concurrency: [1, 2]}\n")
	if a.Hash == c.Hash {
		t.Error("another delay, the same hash")
	}
}

func TestPlanRoundTrip(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml") {
		p := mustPlan(t, string(read(t, path)))
		b, err := p.Marshal()
		must(t, err)
		back, err := LoadPlan(b)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !reflect.DeepEqual(p, back) {
			t.Errorf("%s: the plan loaded differs from the plan made", path)
		}
		again, err := back.Marshal()
		if err != nil || string(again) != string(b) {
			t.Errorf("%s: not the same bytes again (%v)", path, err)
		}
		// The plan's experiment is complete: it gives the same plan.
		replan, err := back.Experiment.Plan()
		if err != nil || replan.Hash != p.Hash {
			t.Errorf("%s: planning the plan's experiment gives another plan (%v)", path, err)
		}
	}
}

func TestLoadPlanRefuses(t *testing.T) {
	p := mustPlan(t, string(read(t, "testdata/good/minimal.yaml")))
	b, err := p.Marshal()
	must(t, err)
	for change, want := range map[[2]string]string{
		{`"seed": 1`, `"seed": 2`}:     "it was changed",
		{`"format": 5`, `"format": 6`}: "format 6",
		{`"format": 5`, `"format": 3`}: "format 3, this program reads formats from 5 to 5",
		{`{`, `[`}:                     "plan: read",
	} {
		changed := strings.Replace(string(b), change[0], change[1], 1)
		if changed == string(b) {
			t.Fatalf("%q is not in the plan", change[0])
		}
		if _, err := LoadPlan([]byte(changed)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", change, err, want)
		}
	}
	for format, reads := range map[string]bool{"1": false, "2": true, "6": false} {
		old, err := ReadPlan([]byte(strings.Replace(string(b), `"format": 5`, `"format": `+format, 1)))
		if (err == nil) != reads || reads && len(old.Cells) != len(p.Cells) {
			t.Errorf("a plan of format %s for reports: %v", format, err)
		}
	}
}

const swarm = `
scenario: disseminate
systems: [mesh]
link: {rate: 100Mbit}
data: {size: 10MB}
disseminate: {nodes: 8}
`

// Estimates follow the physics of simple cases, within a few per cent.
func TestEstimates(t *testing.T) {
	const (
		retrieve = "scenario: retrieve\nsystems: [nginx]\ndata: {size: 100MB}\n"
		overhead = "scenario: overhead\nsystems: [nginx]\nlink: {rate: 10Mbit}\ndata: {size: 1MB}\n" +
			"overhead: {count: 5}\n"
		upload  = "scenario: upload\nsystems: [nginx]\ndata: {size: 1MB}\nlink: {up: 10Mbit, down: 100Mbit}\n"
		payload = 1448.0 / 1538
		chain   = 1000 * (175 + 10*550)
	)
	for _, c := range []struct {
		file, sets     string
		seconds, bytes any // nil: not checked
	}{
		{retrieve, "link.rate=1Gbit; retrieve={requests: 10, concurrency: 10}", 8 / payload, 1e9},
		{retrieve, "link.delay=50ms; retrieve={requests: 100, range: 1kB}", 10.0, 1e5},
		{retrieve, "link.delay=50ms; retrieve={requests: 100, range: 1kB, connections: fresh}", 20.0, nil},
		{retrieve, "link.rate=8Mbit; retrieve={duration: 3s}", 3.0, 3e6 * payload},
		{retrieve, "link.rate=8Mbit; retrieve={range: 100kB, duration: 10s, arrivals: {rate: 100/s}}", 10.0,
			1e7 * payload},
		// Ten round trips, five times, and the operation that opens the connections.
		{overhead, "link.delay=100ms; data.size=1B", 6 * (10*0.2 + guessedWork), 6.0},
		{overhead, "", 6 * (0.8/payload + guessedWork), 6e6},
		{upload, "", 0.08 / payload, 1e6}, // over the server's downlink
		// The content is spread in twice the load line, and made and read back at 200 MB/s.
		{swarm, "", 2*0.8/payload + 0.4, 7e7},
		{swarm, "link.up=50Mbit", 4*0.8/payload + 0.4, nil},
		{swarm, "link.rate=unlimited", 70e6/swarmRate + 0.4, nil},
		{swarm, "disseminate.join={wave: 3, every: 5s}", 2*0.8/payload + 10.4, nil},
		{swarm, "disseminate.join={poisson: 0.5/s}", 2*0.8/payload + 14.4, nil},
		{swarm, "disseminate.faults=[{crash: seeders, at: 50%}]", 2*0.8/payload + 30.4, nil}, // the stall
		{swarm, "disseminate.faults=[{crash: leechers, at: 50%, for: 20s}]", 2*0.8/payload + 20.4, nil},
		{swarm, "systems=fanout", servedSlack*7*0.8/payload + 0.4, nil}, // the seeder sends everything
		{following, "", startFollow + followWork*1000*0.0022 + aroundSync, float64(chain)},
		{following, "link.rate=1Mbit", startFollow + chain*8e-6/payload + aroundSync, nil},
		{following, "sync.speeds={list: [500kbit]}; sync.trouble=[{silent: 1}, {stranger: 1}]",
			startFollow + chain*8e-6/payload + aroundSync, nil},
		{following, "sync.speeds={list: [500kbit]}; sync.trouble=[{slow: 1, rate: 100kbit}, {slow: 1, rate: 400kbit}]",
			startFollow + chain*8e-6/1.5/payload + aroundSync, nil},
		{following, "link.rate=1kbit", 600 + aroundSync, nil}, // limits.deadline
	} {
		var sets []string
		if c.sets != "" {
			sets = strings.Split(c.sets, "; ")
		}
		e := mustPlan(t, c.file, sets...).Cells[0].Estimate
		near := func(what string, got float64, want any) {
			if x, is := want.(float64); is && math.Abs(got-x) > 0.05*x {
				t.Errorf("%s%s: %s %g, want about %g", c.file, c.sets, what, got, x)
			}
		}
		near("seconds", e.Seconds, c.seconds)
		near("bytes", e.Bytes, c.bytes)
	}
	// Nodes live through all trials: 8 s to start them, independent of the number of trials.
	p := mustPlan(t, swarm, "repetitions=20", "disseminate.nodes=2,8", "link.rate=unlimited", "data.size=1B")
	if got := p.Estimate.Seconds - 2*21*aroundTrial; math.Abs(got-8) > 0.1 {
		t.Errorf("%g s beside the trials", got)
	}
}

// A plan with a very short log can be written.
func TestEstimateOfShortLog(t *testing.T) {
	src := read(t, "testdata/good/replay.yaml")
	for _, duration := range []string{"none", "10s"} {
		e, err := Parse("r.yaml", src, []string{"retrieve.duration=" + duration}, testCatalog())
		must(t, err)
		e.Retrieve.Arrivals.Found = &RequestLog{Requests: 1, Bytes: 1000, Paths: 1}
		p, err := e.Plan()
		must(t, err)
		if _, err := p.Marshal(); err != nil || p.Cells[0].Estimate.Seconds > 1 || p.Cells[0].Estimate.Bytes != 1000 {
			t.Errorf("duration %s: %+v, %v", duration, p.Cells[0].Estimate, err)
		}
	}
}
