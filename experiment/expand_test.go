package experiment

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// expected returns the number of cells, counted without the tested code.
func expected(systems, rates, sizes, workers, ranges []string) (cells int) {
	bytes := map[string]int{"1MiB": 1 << 20, "2MB": 2e6, "512KiB": 512 << 10, "64KiB": 64 << 10, "3MiB": 3 << 20,
		"whole": 0}
	for _, sy := range systems {
		for _, ra := range rates {
			for _, si := range sizes {
				for _, wo := range workers {
					for _, rg := range ranges {
						if bytes[rg] <= bytes[si] && (sy != "nginx" || wo == "1" || wo == "8" || ra == "unlimited") {
							cells++
						}
					}
				}
			}
		}
	}
	return cells
}

// The number of cells is the product of the lists minus the excluded cells. Each combination occurs
// once, and each group contains every system once.
func TestExpansion(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		// Distinct levels in a random order, as a YAML list.
		pick := func(all ...string) []string {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return all[:1+rng.IntN(len(all))]
		}
		systems := append(pick("boxo", "static"), "nginx")
		rates := pick("1Mbit", "2Mbit", "unlimited")
		sizes := pick("1MiB", "2MB", "512KiB")
		workers := pick("1", "2", "4", "8")
		ranges := pick("whole", "64KiB", "1MiB", "3MiB")
		list := func(s []string) string { return "[" + strings.Join(s, ", ") + "]" }
		src := fmt.Sprintf(`scenario: retrieve
systems: %s
link: {rate: %s}
data: {size: %s}
retrieve: {requests: 10, concurrency: %s, range: %s}
where:
  - retrieve.range <= data.size
  - system != "nginx" || retrieve.concurrency in [1, 8] || link.rate == unlimited
`, list(systems), list(rates), list(sizes), list(workers), list(ranges))
		want := expected(systems, rates, sizes, workers, ranges)
		e, err := Parse("p.yaml", []byte(src), nil, testCatalog())
		if want == 0 {
			if err == nil || !strings.Contains(err.Error(), "no cell is left") {
				t.Errorf("%s: no cell is possible, got %v", src, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s\n%v", src, err)
		}
		p, err := e.Plan()
		must(t, err)
		if len(p.Cells) != want || p.Estimate.Trials != want*7 {
			t.Errorf("%s\n%d cells, %d trials, want %d cells", src, len(p.Cells), p.Estimate.Trials, want)
		}
		seen, ids, grouped, same := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}
		for _, c := range p.Cells {
			key := fmt.Sprint(c.System, c.Link, c.Data, *c.Retrieve)
			group := c.Group() + "|" + c.System
			if seen[key] || ids[c.ID] || grouped[group] {
				t.Errorf("cell %s (%s) comes twice", c.ID, key)
			}
			seen[key], ids[c.ID], grouped[group] = true, true, true
			// Cells of a group differ only in the system.
			settings := strings.TrimPrefix(key, c.System)
			if first := same[c.Group()]; first != "" && first != settings {
				t.Errorf("group %q: %s and %s", c.Group(), settings, first)
			}
			same[c.Group()] = settings
			if c.Factors[0].Path != "system" || c.Factors[0].Value != c.System {
				t.Errorf("cell %s does not begin with its system: %+v", c.ID, c.Factors)
			}
		}
	}
}

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

// An experiment that does not come from a file is also checked.
func TestPlanReportsImpossibleCells(t *testing.T) {
	p := mustPlan(t, string(read(t, "testdata/good/minimal.yaml")))
	e := p.Experiment
	r := *e.Retrieve
	r.Range = 1 << 30
	e.Retrieve = &r
	if _, err := e.Plan(); err == nil || !strings.Contains(err.Error(), "a range of 1GiB does not fit into an object "+
		"of 1MiB") {
		t.Errorf("got %v", err)
	}
	e.Where = []string{"retrieve.range <="}
	if _, err := e.Plan(); err == nil || !strings.Contains(err.Error(), "a factor or a value expected") {
		t.Errorf("got %v", err)
	}
}

// A bound in bytes is converted into requests, at least one for every worker.
func TestBytesBecomeRequests(t *testing.T) {
	p := mustPlan(t, `scenario: retrieve
systems: [nginx]
data: {size: 64MiB}
retrieve: {bytes: 100MiB, range: [whole, 1MiB, 3MiB], concurrency: [1, 1000]}
`)
	for _, c := range p.Cells {
		n := int64(c.Retrieve.Range)
		if n == 0 {
			n = 64 << 20
		}
		want := max((100<<20+n-1)/n, int64(c.Retrieve.Concurrency))
		if c.Retrieve.Requests != want || c.Retrieve.Bytes != 0 {
			t.Errorf("%s × %d: %d requests, want %d", c.Retrieve.Range, c.Retrieve.Concurrency, c.Retrieve.Requests,
				want)
		}
	}
}

// A system that is only read has its own objects, not those of the file, so no range is too large
// for them.
func TestAttachedSystemHasItsOwnObjects(t *testing.T) {
	const src = `scenario: retrieve
systems: [{use: boost, with: {url: "http://x"}}]
data: {size: 1MiB}
retrieve: {bytes: 100MiB, range: [whole, 10MiB]}
`
	p := mustPlan(t, src)
	if d := p.Cells[0].Data; d.Given() || d.Objects != 0 {
		t.Errorf("data is %+v", d)
	}
	if r := p.Cells[0].Retrieve; r.Bytes != 100<<20 || r.Requests != 0 {
		t.Errorf("the bound of unknown objects became %+v", r)
	}
	if _, err := Parse("w.yaml", []byte(src+"allow: [write]\n"), nil, testCatalog()); err == nil ||
		!strings.Contains(err.Error(), "impossible cell") {
		t.Errorf("written objects have the size of the file, yet: %v", err)
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
