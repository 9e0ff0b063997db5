package report

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// A finished run whose trials are all invalid by a limit is judged by another one, also
// against what was decided when they ended.
func TestARunIsJudgedAgain(t *testing.T) {
	dir, _ := synthetic.Run{Blocks: 2, Change: func(_ experiment.Cell, t *record.Trial) {
		t.Metrics["others_busy"], t.Metrics["box_cpu"] = 0.5, 0.9
		t.Invalid = []string{record.ReasonBoxBusy}
	}}.Write(t)
	for _, c := range []struct {
		sets    []string
		reasons []string
	}{
		{nil, []string{record.ReasonBoxBusy, record.ReasonMachineLimited}},
		{[]string{"limits.others=60%"}, []string{record.ReasonMachineLimited}},
		{[]string{"limits.machine=95%"}, []string{record.ReasonBoxBusy}},
		{[]string{"limits.others=none", "limits.machine=none"}, nil},
	} {
		run, err := record.Open(dir)
		must(t, err)
		defer run.Close()
		rep, err := Build(run, c.sets...)
		must(t, err)
		both, err := CompareRuns(run, []*record.Reader{run}, RunOptions{Sets: c.sets})
		must(t, err)
		valid := 0
		if c.reasons == nil {
			valid = rep.Run.Done
		}
		if rep.Run.Valid != valid || both.Base.Run.Valid != valid || len(rep.Overall) > 0 != (valid > 0) {
			t.Errorf("%v: %d of %d trials are valid, %d compared", c.sets, rep.Run.Valid, rep.Run.Done, both.Base.Run.Valid)
		}
		for _, v := range rep.Invalid {
			if slices.Sort(v.Reasons); !slices.Equal(v.Reasons, c.reasons) {
				t.Fatalf("%v: %v, want %v", c.sets, v.Reasons, c.reasons)
			}
		}
	}
	for _, bad := range []string{"limits.others=110%", "limits.deadline=1s", "limits.others", "seed=1"} {
		run, err := record.Open(dir)
		must(t, err)
		defer run.Close()
		if _, err := Build(run, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A cell at 159 % of its load line is in no verdict, no comparison and no gate, and
// neither are its slower trials.
func TestImpossibleSpeedsDoNotWin(t *testing.T) {
	rep := built(t, synthetic.Run{Blocks: 6, Change: func(c experiment.Cell, t *record.Trial) {
		if c.System == "static" && c.Retrieve.Concurrency == 8 && t.Metrics["throughput"] > 0 && t.Invalid == nil {
			t.Metrics["throughput"] *= 1.64
			t.Metrics["load_line_share"] *= 1.64
		}
	}})
	for _, c := range rep.Cells {
		beyond := c.System == "static" && c.plan.Retrieve.Concurrency == 8
		if _, compared := c.Ratios["throughput"]; compared != (!beyond && c.System != "nginx") || (c.Valid == 0) != beyond || (c.Reasons[record.ReasonBeyondLine] > 0) != beyond {
			t.Errorf("%s, %d at once: %d valid, %v; compared: %v", c.System, c.plan.Retrieve.Concurrency, c.Valid, c.Reasons, compared)
		}
	}
	slower, faster, cells := rep.decided("static")
	if faster > 0 || cells != 4 {
		t.Errorf("static is faster in %d and slower in %d of %d cells; want none of 4", faster, slower, cells)
	}
	rulings, err := rep.Hold([]string{"throughput > 1 MB/s"})
	must(t, err)
	if got := State(rulings); got != RuleOpen {
		t.Errorf("a gate over cells beyond their line: %s", got)
	}
	if !rep.finding("beyond-line") {
		t.Error("the finding is missing")
	}
}
