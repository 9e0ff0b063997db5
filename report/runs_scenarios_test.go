package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// comparedDirs compares run directories.
func comparedDirs(t *testing.T, base string, news ...string) *RunComparison {
	t.Helper()
	open := func(dir string) *record.Reader {
		r, err := record.Open(dir)
		must(t, err)
		t.Cleanup(func() { r.Close() })
		return r
	}
	var all []*record.Reader
	for _, dir := range news {
		all = append(all, open(dir))
	}
	c, err := CompareRuns(open(base), all, RunOptions{})
	must(t, err)
	return c
}

// overall is what a new run's metric over all cells is.
func (c *RunComparison) overall(t *testing.T, key string) OverCells {
	t.Helper()
	for _, o := range c.Overall {
		if o.Metric == key {
			return o
		}
	}
	t.Fatalf("%s is not compared: %+v", key, c.Overall)
	return OverCells{}
}

// Swarms: half as fast is twice the time and half the speed, and both are worse.
func TestCompareSwarms(t *testing.T) {
	t.Parallel()
	file := strings.Replace(swarmFile, "nodes: 8", "nodes: [4, 8]", 1)
	slow := map[string]float64{"deluge": 1.2, "boxo": 2.52}
	c := comparedDirs(t, swarmTruth{file: file}.write(t), swarmTruth{file: swarmFile, pace: slow}.write(t))
	if c.Headline != "time_median" || len(c.Cells) != 2 || len(c.Only) != 2 {
		t.Fatalf("headline %s, %d cells, only %v", c.Headline, len(c.Cells), c.Only)
	}
	for key, ratio := range map[string]float64{"time_median": 2, "speed_median": 0.5} {
		for _, cell := range c.Cells {
			q, want := cell.Metrics[key].New[0].Ratio, 1.0
			if cell.System == "boxo" {
				want = ratio
			}
			if !within(q.Value, want, 0.06) || q.Shown != (want != 1) || (q.Worth < 0) != (want != 1) || q.Worth > 0 {
				t.Errorf("%s of %s: %+v, want %v", key, cell.System, q, want)
			}
		}
		if o := c.overall(t, key); o.Worse != 1 || o.Better != 0 || o.Cells != 2 || o.Worth != -1 {
			t.Errorf("%s over all: %+v", key, o)
		}
	}
}

// Leechers that never finish any more are the worst that there is, not a gap in the
// table; that they finish at last is an improvement.
func TestCompareSwarmsThatNeverFinish(t *testing.T) {
	t.Parallel()
	never := func(when func(block int) bool) swarmTruth {
		return swarmTruth{leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
			if c.System == "boxo" && when(block) {
				for i := range all {
					all[i] = leech{took: 5 * line, got: 0.7, outcome: record.Deadline, class: "deadline"}
				}
			}
		}}
	}
	fine := swarmTruth{}.write(t)
	stuck := never(func(int) bool { return true }).write(t)
	mostly := never(func(b int) bool { return b > 1 }).write(t)
	once := never(func(b int) bool { return b == 3 }).write(t)
	of := func(c *RunComparison, key string) *ComparedValue {
		for _, cell := range c.Cells {
			if cell.System == "boxo" {
				if v := cell.Metrics[key].New; len(v) == 1 && v[0] != nil {
					return v[0]
				}
			}
		}
		t.Fatalf("%s of boxo is not compared", key)
		return nil
	}
	for _, c := range []struct {
		name      string
		base, new string
		worth     int
		never     string
	}{
		{"stuck", fine, stuck, -1, "new"},
		{"mostly stuck", fine, mostly, -1, "new"},
		{"mended", stuck, fine, 1, "base"},
		{"stuck before and after", stuck, stuck, 0, ""},
		{"stuck once", fine, once, 0, ""},
	} {
		cmp := comparedDirs(t, c.base, c.new)
		for _, key := range []string{"time_median", "time_last", "speed_median"} {
			if q := of(cmp, key).Ratio; q.Worth != c.worth || q.Shown != (c.worth != 0) || key != "speed_median" && q.Never != c.never {
				t.Errorf("%s: %s: %+v, want %d, never in %q", c.name, key, q, c.worth, c.never)
			}
		}
		text := comparedText(t, cmp)
		if c.never != "" && (!strings.Contains(text, cutOffWords) || strings.Contains(text, "never  ") || !strings.Contains(text, "have no place in the mean over all cells")) {
			t.Errorf("%s: it is not told:\n%s", c.name, text)
		}
		must(t, cmp.Hold([]string{"no worse than BASE by 50%"}))
		want := map[string]string{"stuck": RuleFail, "mostly stuck": RuleFail, "stuck before and after": RuleOpen}[c.name]
		if want == "" {
			want = RulePass
		}
		if c.name == "mended" {
			want = RuleOpen // no ratio to what never ended
		}
		if g := cmp.Gates[0]; g.State != want {
			t.Errorf("%s: the gate says %+v, want %s", c.name, g, want)
		}
		var page strings.Builder
		must(t, cmp.WriteHTML(&page))
	}
}

// A chain that takes twice as long: its rate is lower, its time longer, both worse.
func TestCompareSyncs(t *testing.T) {
	t.Parallel()
	twice := func(c *experiment.Cell, _ int, f *newcomer) {
		f.first, f.chain, f.serve = 2*f.first, 2*f.chain, 2*f.serve
	}
	c := comparedDirs(t, syncTruth{}.write(t), syncTruth{node: twice}.write(t))
	if c.Headline != "sync_time" || len(c.Cells) != 8 {
		t.Fatalf("headline %s, %d cells", c.Headline, len(c.Cells))
	}
	for key, ratio := range map[string]float64{"sync_time": 2, "chain_time": 2} {
		if o := c.overall(t, key); !within(o.Value, ratio, 0.05) || o.Worse != 8 || o.Worth != -1 {
			t.Errorf("%s over all: %+v, want %v", key, o, ratio)
		}
	}
	for _, m := range c.Metrics {
		if o := c.overall(t, m.Key); m.Better != record.Neither && o.Better > 0 {
			t.Errorf("%s is better where all is slower: %+v", m.Key, o)
		}
	}
}

// Overhead: each operation takes 30 % longer.
func TestCompareOverheads(t *testing.T) {
	t.Parallel()
	file := strings.Replace(strings.Replace(overheadFile, "[0s, 5ms, 20ms, 40ms]", "[0s, 20ms]", 1), "[40B, 1kB, 10kB, 100kB, 1MB, 10MB]", "[1kB, 1MB]", 1)
	longer := func(_ experiment.Cell, tr *record.Trial) {
		for _, key := range []string{"duration_p50", "first_byte_p50"} {
			if v, ok := tr.Metrics[key]; ok {
				tr.Metrics[key] = 1.3 * v
			}
		}
	}
	c := comparedDirs(t, costs{file: file}.write(t), costs{file: strings.Replace(file, "[put, get, fill]", "[put, get]", 1), trial: longer}.write(t))
	if c.Headline != "duration_p50" || len(c.Cells) == 0 || len(c.Only) == 0 {
		t.Fatalf("headline %s, %d cells, only %v", c.Headline, len(c.Cells), c.Only)
	}
	o := c.overall(t, "duration_p50")
	if !within(o.Value, 1.3, 0.05) || o.Worse != len(c.Cells) || o.Better != 0 {
		t.Errorf("over %d cells: %+v", len(c.Cells), o)
	}
}

// Load tests are one trial by default: nothing can be shown, and that is said.
func TestCompareLoadTests(t *testing.T) {
	t.Parallel()
	s := plainLoad(1)
	s.hours, s.objects = 6, 300
	slow := s
	slow.seed, slow.hours = 2, 12
	c := comparedDirs(t, s.write(t), slow.write(t))
	if c.Headline != "file_bandwidth" || len(c.Cells) != 1 {
		t.Fatalf("headline %s, %d cells", c.Headline, len(c.Cells))
	}
	q := c.Cells[0].Metrics["file_bandwidth"].New[0].Ratio
	if !within(q.Value, 0.5, 0.1) || q.Shown || q.Lo.Known() || q.Warn == "" {
		t.Errorf("%+v", q)
	}
	if text := comparedText(t, c); !strings.Contains(text, "can show no difference") {
		t.Error(text)
	}
}
