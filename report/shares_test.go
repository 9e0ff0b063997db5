package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// What is said of the start of a synchronisation is of one trial: the time before the
// first block divided by the whole is the share beside it, and the answer and the
// figure have the same share.
func TestStartUpOfASyncIsOfOneTrial(t *testing.T) {
	r := syncTruth{node: func(_ *experiment.Cell, block int, f *newcomer) {
		// The start takes from a third to most of the time, so that neither means nor
		// medians divide to the mean or the median of the shares.
		f.serve *= []float64{5, 4, 1, 1, 2, 1}[block]
		f.first = f.serve * []float64{0.35, 0.4, 0.45, 0.6, 0.8, 0.9}[block]
		f.chain = f.first + 0.9*(f.serve-f.first)
	}}.build(t)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "start-up" })
	if i < 0 {
		t.Fatalf("no finding on the start: %+v", r.Findings)
	}
	said := regexp.MustCompile(`([0-9.]+) s of ([0-9.]+) s in the middle trial, ([0-9.]+) `).FindAllStringSubmatch(strings.Join(r.Findings[i].Evidence, "\n"), -1)
	if said == nil {
		t.Fatalf("no times in %q", r.Findings[i].Evidence)
	}
	for _, m := range said {
		var v [3]float64
		for i := range v {
			x, err := strconv.ParseFloat(m[i+1], 64)
			must(t, err)
			v[i] = x
		}
		if math.Abs(v[0]/v[1]*100-v[2]) > 1 {
			t.Errorf("%q: that is %.1f %%", m[0], v[0]/v[1]*100)
		}
	}
	d := configuration(t, r, "")
	share, mid := shareOver(d.starts())
	if share.Mid != mid.part/mid.whole || float64(d.StartUp) != share.Mid || math.Abs(float64(d.StartUp+d.Net+d.Index)-1) > 1e-9 {
		t.Errorf("shares %v, %v and %v, of the start %+v of %+v", d.StartUp, d.Net, d.Index, share, mid)
	}
	if want := fmt.Sprintf("%s of %s (%s) before the first block in the middle trial", show(mid.part, "s"), show(mid.whole, "s"), percent(share.Mid)); !strings.Contains(fmt.Sprint(r.Answer), want) {
		t.Errorf("no %q in %+v", want, r.Answer)
	}
}

// In tables, too, a machine is full at 100 %; what was measured stays in the data.
func TestAShareOfTheMachineIsAtMostAll(t *testing.T) {
	r := syncTruth{file: syncFile + "limits: {machine: none}\n", metrics: func(_ *experiment.Cell, m map[string]float64) { m["box_cpu"], m["system_cpu"] = 1.02, 3 }}.build(t)
	table := r.resourceTable()
	k := slices.IndexFunc(table.Head, func(c Column) bool { return c.Name == "CPU of the machine" })
	if k < 0 {
		t.Fatalf("columns %v", table.Head)
	}
	if e := table.Rows[0][k]; e.Text != "100 %" || e.Raw != "1.02" {
		t.Errorf("shown %q of %q", e.Text, e.Raw)
	}
	if v := r.cells()[0].Metrics["box_cpu"].Median; v != 1.02 {
		t.Errorf("measured %v", v)
	}
}

// A count of round trips is the same in words, table, terminal and picture, and has
// the digits that tell 1.04 from 1.14.
func TestRoundTripsAreToldAlike(t *testing.T) {
	r := sharedCosts(t)
	table, told := r.fitTable(), 0
	k := slices.IndexFunc(table.Head, func(c Column) bool { return strings.Contains(c.Name, "round trips") })
	picture := r.roundsFigure()
	drawn := fmt.Sprint(picture.Panels)
	for i := range r.Fits {
		f := &r.Fits[i]
		if !counted(f.Rounds) {
			continue
		}
		n := decimals(float64(f.Rounds.Value))
		told++
		if !regexp.MustCompile(`^\d+\.\d\d$`).MatchString(n) || table.Rows[i][k].Text != n || !strings.HasPrefix(f.roundsText(), n) || !strings.HasPrefix(f.before(), n+" round trip") || !strings.Contains(drawn, ": "+n+" round trip") {
			t.Errorf("%s, %s: %q in the table, %q on the terminal, %q in words, want %q", f.System, f.Operation, table.Rows[i][k].Text, f.roundsText(), f.before(), n)
		}
	}
	if told < 4 {
		t.Errorf("only %d fits", told)
	}
}
