package experiment

import (
	"fmt"
	"strings"
	"testing"
)

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
