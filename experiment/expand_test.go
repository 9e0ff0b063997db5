package experiment

import (
	"fmt"
	"math/rand/v2"
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

// The meaning of conditions, for one cell.
func TestWhere(t *testing.T) {
	const src = `scenario: retrieve
systems: [nginx]
link: {delay: 40ms, loss: 1%, queue: auto}
data: {size: 2MiB}
retrieve: {requests: 10, concurrency: 8, range: RANGE, order: aligned}
`
	for _, c := range []struct {
		rangeSize, expr string
		want            bool
	}{
		{"1MiB", "retrieve.range < data.size", true},
		{"2MiB", "retrieve.range <= data.size", true},
		{"2MiB", "retrieve.range >= data.size && retrieve.range == data.size", true},
		{"2MiB", "retrieve.range == whole", false}, // the same bytes, but not the same request
		{"whole", "retrieve.range == whole", true},
		{"whole", "retrieve.range > 1MiB", true},
		{"1MiB", "retrieve.range == 1024KiB", true},
		{"1MiB", "link.rate > 999Tbit", true}, // unlimited
		{"1MiB", "link.rate == unlimited", true},
		{"1MiB", "link.queue == auto", true},
		{"1MiB", "queue < 1PiB", false}, // auto has no order
		{"1MiB", "link.delay == 0.04s && link.loss == 0.01", true},
		{"1MiB", "link.delay > 39ms && link.delay < 41ms", true},
		{"1MiB", "retrieve.concurrency in [1, 8]", true},
		{"1MiB", "retrieve.order in [random, aligned]", true},
		{"1MiB", "!(retrieve.order == aligned)", false},
		{"1MiB", `system == nginx && system == "nginx" && system == 'nginx'`, true},
		// && binds more tightly than ||.
		{"1MiB", "retrieve.concurrency == 8 || retrieve.concurrency == 8 && retrieve.concurrency == 9", true},
		{"1MiB", "(retrieve.concurrency == 8 || retrieve.concurrency == 8) && retrieve.concurrency == 9", false},
		{"1MiB", "concurrency == 9 or concurrency = 8 and delay < 41ms", true},
	} {
		set := []string{"retrieve.range=" + c.rangeSize, "where=" + c.expr}
		_, err := Parse("w.yaml", []byte(src), set, testCatalog())
		if err != nil && !strings.Contains(err.Error(), "no cell is left") {
			t.Errorf("%s: %v", c.expr, err)
		} else if got := err == nil; got != c.want {
			t.Errorf("range %s: %s is %v, want %v", c.rangeSize, c.expr, got, c.want)
		}
	}
}

// The grid of a study in which at most half of the nodes are seeders.
func TestWhereProduct(t *testing.T) {
	const src = `scenario: disseminate
systems: [mesh]
link: {rate: [100Mbit, 1Gbit]}
data: {size: 1MB}
disseminate: {nodes: [2, 8, 16, 32], seeders: [1, 2, 4, 8, 16]}
where: ["CONDITION"]
`
	pairs := func(condition string) string {
		p := mustPlan(t, strings.Replace(src, "CONDITION", condition+" && link.rate == 1Gbit && disseminate.seeders "+
			"< disseminate.nodes", 1))
		var all []string
		for _, c := range p.Cells {
			all = append(all, fmt.Sprintf("%d/%d", c.Disseminate.Nodes, c.Disseminate.Seeders))
		}
		return strings.Join(all, " ")
	}
	const half = "2/1 8/1 8/2 8/4 16/1 16/2 16/4 16/8 32/1 32/2 32/4 32/8 32/16"
	for condition, want := range map[string]string{
		"2 * disseminate.seeders <= disseminate.nodes":                                             half,
		"disseminate.seeders <= 0.5 * disseminate.nodes":                                           half,
		"!(2*disseminate.seeders>disseminate.nodes)":                                               half,
		"disseminate.nodes == 2 * disseminate.seeders":                                             "2/1 8/4 16/8 32/16",
		"2 * disseminate.nodes != 4 * disseminate.seeders && disseminate.nodes == 8":               "8/1 8/2",
		"2 * disseminate.seeders in [16, 32] && disseminate.nodes == 32":                           "32/8 32/16",
		"10 * link.rate == 10Gbit && disseminate.nodes == 2":                                       "2/1",
		"2 * disseminate.seeders <= 3 && (10 * link.rate > 1Gbit) && disseminate.nodes in [2, 16]": "2/1 16/1",
	} {
		if got := pairs(condition); got != want {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
}
