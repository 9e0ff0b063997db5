package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// summaryJSON is the report as another program reads it.
func summaryJSON(t *testing.T, r *Report) *Report {
	t.Helper()
	var b bytes.Buffer
	must(t, r.WriteJSON(&b))
	back := &Report{}
	must(t, json.Unmarshal(b.Bytes(), back))
	return back
}

func fitIn(t *testing.T, r *Report, system, operation string) Fit {
	t.Helper()
	for _, f := range r.Fits {
		if f.System == system && f.Operation == operation {
			return f
		}
	}
	t.Fatalf("no fit of %s, %s among %d", system, operation, len(r.Fits))
	return Fit{}
}

// near checks that an estimate is within a share of the truth, and that its
// interval is one.
func near(t *testing.T, what string, e Estimate, want, within float64) {
	t.Helper()
	if math.Abs(float64(e.Value)-want) > within*math.Abs(want) || !(e.Lo <= e.Value && e.Value <= e.Hi) || !(e.Lo < e.Hi) {
		t.Errorf("%s is %g (%g to %g), the truth %g", what, e.Value, e.Lo, e.Hi, want)
	}
}

func TestCostsAreRecovered(t *testing.T) {
	r := summaryJSON(t, sharedCosts(t))
	for system, operations := range truths {
		for operation, want := range operations {
			f := fitIn(t, r, system, operation)
			name := system + ", " + operation
			near(t, name+": A", f.A, want.a, 0.06)
			near(t, name+": 1/B", f.Rate, want.rate, 0.04)
			near(t, name+": R", f.Rounds, want.rounds, 0.03)
			if !f.Holds || f.Why != "" || f.Spread < 0.01 || f.Spread > 0.04 {
				t.Errorf("%s: holds %v, %q, spread %g of noise of 0.02", name, f.Holds, f.Why, f.Spread)
			}
		}
	}
	put := fitIn(t, r, "tahoe", "put")
	if put.Inline == nil || put.Inline.Stays != 40 || put.Inline.Goes != 1000 || put.From != 1000 {
		t.Errorf("inline %+v, fitted from %g", put.Inline, put.From)
	}
	if f := fitIn(t, r, "sftp", "put"); f.Inline != nil || f.Against != nil || f.From != 40 {
		t.Errorf("the baseline: inline %+v, against %+v, fitted from %g", f.Inline, f.Against, f.From)
	}
	near(t, "share of the load line", put.LineShare, 5e6/(95e6/8/truthExpansion), 0.04)
	// At 10 MB and no distance the bytes decide, at 1 kB the rest does.
	sys, base := truths["tahoe"]["put"], truths["sftp"]["put"]
	large := (sys.a + 1e7/sys.rate) / (base.a + truthExpansion*1e7/base.rate)
	small := (sys.a + 9*0.0003) / (base.a + 3*0.0003 + (truthExpansion*1000+2000)/base.rate)
	a := put.Against
	if a == nil || a.System != "sftp" || a.Operation != "put" || a.N != put.Points {
		t.Fatalf("against the baseline: %+v", a)
	}
	if math.Abs(float64(a.Least.Value)/large-1) > 0.05 || math.Abs(float64(a.Most.Value)/small-1) > 0.05 || !(a.Least.Value < a.Ratio.Lo && a.Ratio.Hi < a.Most.Value) {
		t.Errorf("from %g (truth %g) to %g (truth %g), over all %+v", a.Least.Value, large, a.Most.Value, small, a.Ratio)
	}
}

func TestPhasesTellTheirRoundTrips(t *testing.T) {
	r := summaryJSON(t, sharedCosts(t))
	want := map[string]float64{"peer selection": 2, "encode and push": 6, "send hashes and close": 1}
	var names []string
	for _, p := range r.Phases {
		if p.Size != 1000 {
			continue
		}
		names = append(names, p.Phase)
		near(t, p.Phase, p.Rounds, want[p.Phase], 0.1)
	}
	if !slices.Equal(names, []string{"peer selection", "encode and push", "send hashes and close"}) {
		t.Errorf("phases %q: not the system's own order", names)
	}
}

func TestMemoryOfEachKindOfProcess(t *testing.T) {
	r := sharedCosts(t)
	for _, m := range summaryJSON(t, r).Memory {
		if m.System != "tahoe" {
			continue
		}
		switch m.Process {
		case "client":
			near(t, "growth", m.Growth, truthMemory, 0.2)
			near(t, "peak of one upload", m.One, 87.2e6+truthMemory*1e7, 0.02)
			near(t, "peak of several", m.Several, 87.2e6+4*truthMemory*1e7, 0.02)
			if m.Grows != "yes" || !m.AtLeast || m.Operation != "put" || m.Processes != 1 || m.AtOnce != 4 || m.OneSize != 1e7 {
				t.Errorf("client: %+v", m)
			}
		case "storage":
			near(t, "storage between loads", m.Between, 85e6, 0.02)
			if m.RestRSS.Value != 85e6 || m.RestPSS.Value != 51e6 || m.Grows != "no" || m.Processes != 2 {
				t.Errorf("storage: %+v", m)
			}
		default:
			t.Errorf("a process %q", m.Process)
		}
	}
	if f := r.found("memory-grows"); f == nil || f.Tone != Warn || !strings.Contains(strings.Join(f.Evidence, " "), "tahoe, client") || strings.Contains(strings.Join(f.Evidence, " "), "storage") {
		t.Errorf("growth: %+v", f)
	}
	if f := r.found("memory-flat"); f == nil || !strings.Contains(strings.Join(f.Evidence, " "), "tahoe, storage") {
		t.Errorf("no growth: %+v", f)
	}
}

func TestASlopeIsShownOnlyWhereThereIsOne(t *testing.T) {
	r := sharedCosts(t)
	for _, s := range summaryJSON(t, r).Trends {
		if s.N != 6 || s.From != 500 || s.To != 5500 {
			t.Errorf("%s, %s: %d trials, %g to %g objects", s.System, s.Operation, s.N, s.From, s.To)
		}
		if want := s.System == "tahoe" && s.Operation == "put"; s.Shown != want {
			t.Errorf("%s, %s: slope %+v shown: %v", s.System, s.Operation, s.Slope, s.Shown)
		} else if want && !(float64(s.Slope.Lo) < truthSlope && truthSlope < float64(s.Slope.Hi)) {
			t.Errorf("slope %+v, the truth %g", s.Slope, truthSlope)
		}
	}
	if f := r.found("objects-slope"); f == nil || len(f.Evidence) != 1 || !strings.HasPrefix(f.Evidence[0], "tahoe, put") {
		t.Errorf("slope: %+v", f)
	}
	if f := r.found("objects-flat"); f == nil || len(f.Evidence) != 5 {
		t.Errorf("no slope: %+v", f)
	}
	if got := r.trendClause(); got != "with the number of objects (up to 5,500) it becomes slower: tahoe put" {
		t.Errorf("the verdict's clause: %q", got)
	}
}

const getFile = `
scenario: overhead
systems: [tahoe, sftp]
baseline: sftp
link: {rate: 100Mbit, delay: [0s, 5ms, 20ms, 40ms]}
data: {size: [1kB, 10kB, 100kB, 1MB, 10MB]}
overhead: {operation: get, longest: 5m}
repetitions: 6
`

func TestInvalidTrialsAreInNoFit(t *testing.T) {
	plain := costs{file: getFile}.built(t)
	n := 0
	spoilt := costs{file: getFile, trial: func(_ experiment.Cell, t *record.Trial) {
		if n++; n%4 == 0 {
			t.Invalid, t.Metrics["duration_p50"] = []string{record.ReasonBoxBusy}, t.Metrics["duration_p50"]*7
		}
	}}.built(t)
	a, b := fitIn(t, plain, "tahoe", "get"), fitIn(t, spoilt, "tahoe", "get")
	if b.Points >= a.Points || spoilt.Run.Invalid == 0 {
		t.Errorf("%d points, %d without invalid ones", a.Points, b.Points)
	}
	near(t, "R beside invalid trials", b.Rounds, 4, 0.03)
	near(t, "A beside invalid trials", b.A, 0.020, 0.06)
}

func TestRoundTripsAreToldOnlyWhereTheyVary(t *testing.T) {
	one := strings.Replace(getFile, "[0s, 5ms, 20ms, 40ms]", "20ms", 1)
	r := costs{file: one}.built(t)
	f := fitIn(t, r, "tahoe", "get")
	if f.Rounds.Value.Known() || !strings.Contains(f.Why, "did not vary") {
		t.Errorf("one round trip: %+v, %q", f.Rounds, f.Why)
	}
	near(t, "A with the round trips in it", f.A, 0.020+4*0.040, 0.03)
	if r.Hero == nil || r.Hero.ID != "hero" || strings.Contains(r.Verdict.Text, "round trip") {
		t.Errorf("hero %v, verdict %q", r.Hero != nil, r.Verdict.Text)
	}
	f = fitIn(t, costs{file: getFile, noLink: true, time: func(c experiment.Cell, _ float64) float64 { return 0.02 + float64(c.Data.Size)/8e6 }}.built(t), "tahoe", "get")
	if f.Rounds.Value.Known() || f.LineShare.Value.Known() || f.Why == "" {
		t.Errorf("no link was measured: %+v, %+v, %q", f.Rounds, f.LineShare, f.Why)
	}
}

// One size at one delay: its time is that of all, and nothing is said of a part.
func TestOneSizeAtOneDelayIsNotSplit(t *testing.T) {
	one := strings.NewReplacer("[0s, 5ms, 20ms, 40ms]", "20ms", "[1kB, 10kB, 100kB, 1MB, 10MB]", "1MB").Replace(getFile)
	r := costs{file: one}.built(t)
	for _, text := range append([]string{r.Verdict.Text}, r.Answer[0].Text) {
		if strings.Contains(text, "before its bytes") || strings.Contains(text, "then ") {
			t.Error(text)
		}
	}
}

func TestTooFewTrialsAreWords(t *testing.T) {
	few := strings.NewReplacer("[0s, 5ms, 20ms, 40ms]", "[0s, 20ms]", "[1kB, 10kB, 100kB, 1MB, 10MB]", "[1kB, 1MB]", "repetitions: 6", "repetitions: 1").Replace(getFile)
	r := costs{file: few, trial: func(c experiment.Cell, t *record.Trial) {
		if c.Data.Size > 1000 {
			t.Invalid = []string{record.ReasonBoxBusy}
		}
	}}.built(t)
	f := fitIn(t, r, "tahoe", "get")
	if f.Points != 2 || f.Why == "" {
		t.Errorf("%d points: %q", f.Points, f.Why)
	}
	for what, e := range map[string]Estimate{"B": f.B, "1/B": f.Rate} {
		if e.Value.Known() {
			t.Errorf("%s of one size is %+v", what, e)
		}
	}
	if f.A.Lo.Known() {
		t.Errorf("two trials of two cells bound A: %+v", f.A)
	}
	if strings.Contains(r.Verdict.Text, "round trip") && !strings.Contains(r.Verdict.Text, "undetermined") {
		t.Errorf("verdict %q", r.Verdict.Text)
	}
	if r.found("model") != nil {
		t.Error("a model that nothing tested is said not to hold")
	}
	page(t, r)
	text(t, r, 100)
}

func TestAModelThatDoesNotHoldSaysSo(t *testing.T) {
	r := costs{file: getFile, time: func(c experiment.Cell, rtt float64) float64 {
		return 0.02 + rtt*rtt*400 + math.Sqrt(float64(c.Data.Size))*1e-3
	}}.built(t)
	if f := fitIn(t, r, "tahoe", "get"); f.Holds || f.Why == "" {
		t.Errorf("holds: %v, %q", f.Holds, f.Why)
	}
	if f := r.found("model"); f == nil || f.Tone != Warn {
		t.Errorf("findings %+v", r.Findings)
	}
	if v := r.Verdict.Text; strings.Contains(v, "round trip") || !strings.Contains(v, "an undetermined time (its fit does not hold)") {
		t.Errorf("the verdict quotes it: %q", v)
	}
	if a := fmt.Sprint(r.Answer); strings.Contains(a, "round trip") || !strings.Contains(a, "no line fits its times") {
		t.Errorf("the answer quotes it: %s", a)
	}
}

// What has no width to be told as a share is told by its ends.
func TestAnEstimateThatIsHardlyKnown(t *testing.T) {
	for _, c := range []struct {
		e    Estimate
		unit string
		want string
	}{
		{Estimate{264e-6, -100e-6, 629e-6}, "s", "(-100–629)"},
		{Estimate{13.5e6, 2.4e6, Num(math.Inf(1))}, "B/s", "(2.40–∞)"},
		{Estimate{2, 1.9, 2.1}, "s", "± 5 %"},
		{Estimate{2, unknown, unknown}, "s", ""},
	} {
		if got := wider(c.e, c.unit); got != c.want {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}

// A model that the trials contradict, but by little, is no alarm.
func TestAModelThatMissesByLittle(t *testing.T) {
	curved := func(share float64) *Report {
		return costs{file: getFile, time: func(c experiment.Cell, rtt float64) float64 {
			wave := math.Sin(2*math.Log(float64(c.Data.Size)) + 300*rtt)
			return (0.02 + 4*rtt + float64(c.Data.Size)/8e6) * (1 + share*wave)
		}}.built(t)
	}
	r := curved(0.05)
	f := fitIn(t, summaryJSON(t, r), "tahoe", "get")
	if f.Holds || !(f.Misfit > 0.02 && f.Misfit < findings.NearMisfit) {
		t.Errorf("holds %v, misfit %g, %q", f.Holds, f.Misfit, f.Why)
	}
	if x := r.found("model-near"); x == nil || x.Tone != Neutral || !strings.Contains(x.Evidence[0], "the worst cell is off by") || r.found("model") != nil {
		t.Errorf("findings %+v", r.Findings)
	}
	if x := curved(0.3).found("model"); x == nil || x.Tone != Warn {
		t.Errorf("a misfit of three tenths: %+v", x)
	}
}

// What surrounds the timed operations is in the CPU, and differs by system.
func TestCPUIsShownAndNotCompared(t *testing.T) {
	r := sharedCosts(t)
	for _, c := range r.cells() {
		if _, ok := c.Ratios["system_cpu_per_op"]; ok || !r.measured("system_cpu_per_op") {
			t.Fatalf("%s: compared %v", c.System, ok)
		}
	}
}

func TestSkippedIsNeitherInvalidNorFailed(t *testing.T) {
	r := costs{file: getFile, trial: func(c experiment.Cell, t *record.Trial) {
		if c.System == "tahoe" && c.Data.Size == 1e7 {
			*t = record.Trial{State: record.Skipped, Error: "get of 1MB took 2m, longer than overhead.longest"}
		}
	}}.built(t)
	if r.Run.Invalid+r.Run.Failed != 0 || r.Run.Skipped != 4*6 || r.Run.Done+r.Run.Skipped != r.Run.Planned || r.Run.State != "complete" || len(r.Invalid) != 0 {
		t.Errorf("run %+v", r.Run)
	}
	if len(r.Skipped) != 4 || r.Skipped[0].Trials != 6 || !strings.Contains(r.Skipped[0].Why, "overhead.longest") {
		t.Errorf("skipped %+v", r.Skipped)
	}
	if f := r.found("skipped"); f == nil || len(f.Evidence) != 4 {
		t.Errorf("findings %+v", r.Findings)
	}
	if strings.Contains(r.Verdict.Text, "finished in a valid trial") {
		t.Errorf("verdict %q", r.Verdict.Text)
	}
	if f := fitIn(t, r, "tahoe", "get"); f.To != 1e6 {
		t.Errorf("fitted up to %g", f.To)
	}
}

func TestCellsLeftOutOfThePlanAreListed(t *testing.T) {
	r := costs{file: strings.Replace(getFile, "longest: 5m", "longest: 1s", 1)}.built(t)
	if len(r.Skipped) == 0 || r.Skipped[0].Trials != 0 || !strings.Contains(r.Skipped[0].Where, "size 10 MB") || r.Run.Skipped != 0 {
		t.Errorf("skipped %+v", r.Skipped)
	}
	if r.found("skipped") == nil {
		t.Error("no finding says so")
	}
}

func TestTheStudyStandsBesideItsOwnSystemOnly(t *testing.T) {
	r := costs{}.built(t)
	if s := r.studySection(); len(s.Table.Rows) != 5 || s.Table.Rows[0][2].Text == "" {
		t.Errorf("then and now: %+v", s.Table.Rows)
	}
	r.Systems[0].Use = "s3"
	if s := r.studySection(); len(s.Table.Rows) != 0 {
		t.Errorf("of another system: %+v", s.Table.Rows)
	}
}

func TestCostsFitATerminal(t *testing.T) {
	r := sharedCosts(t)
	out := text(t, r, 100)
	for line := range strings.Lines(out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("a line has %d: %q", n, line)
		}
		if strings.Contains(line, "…") {
			t.Errorf("a line is cut: %q", line)
		}
	}
	for _, want := range []string{"connections", "9.00 ± 0.0", "baseline", "per file byte"} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
}

// A run directory of the scenario, with all exports.
func TestCostExports(t *testing.T) {
	file := strings.NewReplacer("[0s, 5ms, 20ms, 40ms]", "[0s, 40ms]", "[40B, 1kB, 10kB, 100kB, 1MB, 10MB]", "[40B, 1kB, 1MB]", "repetitions: 6", "repetitions: 2").Replace(overheadFile)
	r := buildDir(t, costs{file: file}.write(t))
	for name, write := range exports {
		var b bytes.Buffer
		must(t, write(r, &b))
		if !bytes.Contains(b.Bytes(), []byte("duration")) {
			t.Errorf("%s does not name the duration", name)
		}
	}
}
