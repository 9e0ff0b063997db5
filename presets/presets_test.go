package presets

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// catalog has the systems and options that the presets use.
func catalog() experiment.Catalog {
	return experiment.Catalog{
		{Name: "static", Modes: []string{"start"}, Baseline: true, HTTP: true, Options: []experiment.OptionSpec{{Name: "tls", Type: "bool", Default: "false"}}},
		{Name: "nginx", Modes: []string{"start"}, Baseline: true, HTTP: true},
		{Name: "boxo", Modes: []string{"start"}, HTTP: true},
		{Name: "boost", Modes: []string{"attach"}, HTTP: true, Options: []experiment.OptionSpec{{Name: "url", Type: "string", Required: true}, {Name: "list", Type: "string", Required: true}}},
	}
}

func plan(t *testing.T, name string, set ...string) *experiment.Plan {
	t.Helper()
	p, err := Get(name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiment.Parse(name+".yaml", p.Source, set, catalog())
	if err != nil {
		t.Fatalf("%v", err)
	}
	pl, err := e.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

func TestList(t *testing.T) {
	var names []string
	for _, p := range List() {
		names = append(names, p.Name)
		if p.Summary == "" || strings.Contains(p.Summary, "\n") || strings.HasPrefix(p.Summary, "#") {
			t.Errorf("%s: summary %q", p.Name, p.Summary)
		}
		if !bytes.HasPrefix(p.Source, []byte("# "+p.Name+": ")) {
			t.Errorf("%s does not begin with its name", p.Name)
		}
		if !bytes.Contains(p.Source, []byte("why:")) {
			t.Errorf("%s does not say why it changes what it changes", p.Name)
		}
		if w := plan(t, p.Name).Warnings(); len(w) > 0 {
			t.Errorf("%s: %s", p.Name, w)
		}
	}
	if got := strings.Join(names, " "); got != "boost-retrieval quickstart" {
		t.Errorf("presets are %s", got)
	}
	if _, err := Get("slowstart"); err == nil || !strings.Contains(err.Error(), "quickstart") {
		t.Errorf("got %v", err)
	}
}

// The quickstart promises a first result in about a minute.
func TestQuickstart(t *testing.T) {
	p := plan(t, "quickstart")
	if p.Estimate.Trials != 63 || p.Estimate.Seconds > 80 {
		t.Errorf("estimate %+v", p.Estimate)
	}
	if p.Experiment.Baseline != "static" {
		t.Errorf("baseline %s", p.Experiment.Baseline)
	}
	load := 0.0
	for _, c := range p.Cells {
		load += c.Estimate.Seconds * float64(p.Warmup+p.Blocks)
	}
	if load > 50 {
		t.Errorf("%.0f s of load leave too little for starting and checking", load)
	}
}

// The study's whole grid, and nothing else.
func TestBoostRetrieval(t *testing.T) {
	p := plan(t, "boost-retrieval")
	got := map[string]bool{}
	for _, c := range p.Cells {
		r := c.Retrieve
		got[c.System+" "+c.Link.Rate.String()+" "+r.Range.String()+" "+strconv.Itoa(r.Concurrency)] = true
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
	want := map[string]bool{}
	for _, s := range []string{"nginx", "boxo"} {
		for _, rate := range []string{"1Gbit", "10Gbit"} {
			for _, c := range []int{1, 8, 16, 32, 64} {
				want[s+" "+rate+" whole "+strconv.Itoa(c)] = true
			}
			for _, n := range []string{"1MiB", "10MiB", "100MiB"} {
				for _, c := range []int{10, 100, 1000} {
					want[s+" "+rate+" "+n+" "+strconv.Itoa(c)] = true
				}
			}
		}
	}
	if len(got) != len(p.Cells) || len(got) != len(want) {
		t.Errorf("%d cells, %d of them different, want %d", len(p.Cells), len(got), len(want))
	}
	for k := range want {
		if !got[k] {
			t.Errorf("no cell %s", k)
		}
	}
}

// What its header says can be done with --set can be done.
func TestBoostRetrievalScales(t *testing.T) {
	p := plan(t, "boost-retrieval", "link.rate=1Gbit", "retrieve.range=1MiB,10MiB", "retrieve.concurrency=10,100", "retrieve.bytes=1GiB", "repetitions=3")
	if len(p.Cells) != 8 || p.Estimate.Seconds > 1800 {
		t.Errorf("%d cells, %.0f s", len(p.Cells), p.Estimate.Seconds)
	}
	p = plan(t, "boost-retrieval", "systems=boost", "systems.boost.with.url=http://provider:7777", "systems.boost.with.list=pieces.txt")
	if p.Experiment.Baseline != "none" || p.Cells[0].System != "boost" {
		t.Errorf("%+v", p.Experiment.Systems)
	}
	p = plan(t, "boost-retrieval", "systems=nginx,boost", "systems.boost.with.url=http://provider:7777", "systems.boost.with.list=pieces.txt")
	if p.Experiment.Baseline != "nginx" || len(p.Cells) != 56 {
		t.Errorf("baseline %s, %d cells", p.Experiment.Baseline, len(p.Cells))
	}
}
