package gate

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

var names = Names{
	Metrics: []Metric{{Key: "throughput", Unit: "B/s"}, {Key: "ttfb_p50", Unit: "s"}, {Key: "ttfb_p95", Unit: "s"},
		{Key: "success_rate", Unit: "ratio"}, {Key: "storage_efficiency", Unit: "ratio"},
		{Key: "ops_rate", Unit: "1/s"},
		{Key: "expansion", Unit: "×"}, {Key: "commits", Unit: "1", Neither: true},
		{Key: "line", Unit: "bit/s", Neither: true}, {Key: "cpu", Unit: "s/GB", Lower: true},
		{Key: "seeder_share", Unit: "ratio", Neither: true}},
	Headline: "throughput",
	Cells: []map[string]string{
		{"system": "deluge", "sync.storage": "disk", "disseminate.faults": "none"},
		{"system": "codex", "sync.storage": "ram", "disseminate.faults": "crash seeders at 50% for 5s"},
	},
	Base: true,
}

func TestRules(t *testing.T) {
	for rule, want := range map[string]Rule{
		"p95(ttfb) < 200ms":                  {Metric: "ttfb_p95", Op: "<", Value: 0.2},
		"success_rate >= 99.9%":              {Metric: "success_rate", Op: ">=", Value: 0.999},
		"efficiency > 0.3":                   {Metric: "storage_efficiency", Op: ">", Value: 0.3},
		"throughput > 12.5 MB/s":             {Metric: "throughput", Op: ">", Value: 12.5e6},
		"throughput > 1MiB/s":                {Metric: "throughput", Op: ">", Value: 1 << 20},
		"line > 10Mbit/s":                    {Metric: "line", Op: ">", Value: 1e7},
		"ops_rate > 2k/s":                    {Metric: "ops_rate", Op: ">", Value: 2000},
		"expansion < 3x":                     {Metric: "expansion", Op: "<", Value: 3},
		"cpu < 2 s/GB":                       {Metric: "cpu", Op: "<", Value: 2},
		"throughput within 20% of deluge":    {Metric: "throughput", Kind: Within, Share: 0.2, System: "deluge"},
		"no worse than BASE by 5%":           {Metric: "throughput", Kind: NoWorse, Share: 0.05},
		"no worse than BASE":                 {Metric: "throughput", Kind: NoWorse, Share: 0.04},
		"ttfb_p50 no worse than BASE by 0.1": {Metric: "ttfb_p50", Kind: NoWorse, Share: 0.1},
		"cpu no worse than BASE by 150%":     {Metric: "cpu", Kind: NoWorse, Share: 1.5},
		"throughput > 2.5e-1 MB/s":           {Metric: "throughput", Op: ">", Value: 2.5e5},
		"efficiency > 1.02":                  {Metric: "storage_efficiency", Op: ">", Value: 1.02},
	} {
		got, err := Parse(rule, names, 0.04)
		want.Text = rule
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", rule, got, err, want)
		}
	}
}

// A rule applies to the cells for which its condition holds.
func TestRulesMeanCells(t *testing.T) {
	names := names
	cells := []map[string]string{
		{"system": "codex", "sync.storage": "disk", "disseminate.faults": "none"},
		{"system": "deluge", "sync.storage": "ram", "disseminate.faults": "crash seeders at 50% for 5s"},
		{"system": "store.local", "sync.storage": "tape", "disseminate.faults": "none"},
	}
	names.Cells = cells
	for where, want := range map[string]string{
		"": "012", "storage == ram": "1", "sync.storage != ram": "02", "system == store.local": "2",
		"system in [codex, store.local]":      "02",
		"storage == ram and system == deluge": "1", "storage == ram || system == codex": "01",
		`faults == "crash seeders at 50% for 5s" and system == 'deluge'`: "1", "system in [codex, deluge] && " +
			"!(faults == none)": "1",
	} {
		text := "commits < 9"
		if where != "" {
			text += " where " + where
		}
		rule, err := Parse(text, names, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, c := range cells {
			if rule.AppliesTo(func(path string) string { return c[path] }) {
				got += strconv.Itoa(i)
			}
		}
		if got != want {
			t.Errorf("%s: cells %q, want %q", where, got, want)
		}
	}
}

func TestMistakesAreShown(t *testing.T) {
	for _, c := range []struct {
		rule string
		at   int
		msg  string
		fix  string
	}{
		{"mean(ttfb) < 200ms", 1, "the run has no metric `mean(ttfb)`", "known: throughput"},
		{"p95(ttfb < 200ms", 1, "the run has no metric `p95(ttfb`", ""},
		{"ttfb_p50 < 2s where system == other.local", 31, "`system`: it has no level `other.local`",
			"levels: deluge, codex"},
		{"ttfb_p50 < 2s where store.local == other.local", 21, "`store.local` is no factor", ""},
		{"ttfb_p50 < 2s where", 20, "a factor or a value expected", "known: faults, storage, system"},
		{"ttfb_p50 < 2s where storage ==", 31, "a factor or a value expected", ""},
		{"ttfb_p50 < 2s where storage ram", 29, "a comparison expected after `storage`", ""},
		{"throughputt > 1MB/s", 1, "the run has no metric `throughputt`", "did you mean `throughput`?"},
		{"ttfb < 200ms", 1, "`ttfb` can be several metrics", "one of: ttfb_p50, ttfb_p95"},
		{"p99(ttfb) < 200ms", 1, "the run has no metric `ttfb_p99`", "did you mean"},
		{"ttfb_p50 < 200", 12, "ttfb_p50 is in s, and `200` is not", "units: h, min, ms, ns, s, us, µs"},
		{"success >= 99.9", 12, "success_rate is a share: `99.9` is 9990 %", "did you mean `99.9%`?"},
		{"throughput within 5% of BASE", 25, "the run has no system `BASE`", "METRIC no worse than BASE by 5%"},
		{"ttfb_p50 < 2s where faults == crash seeders", 31, "`disseminate.faults`: it has no level `crash`",
			`levels: none, "crash seeders at 50% for 5s"`},
		{`ttfb_p50 < 2s where faults == "crash`, 31, "the quoted text does not end", ""},
		{"success_rate > 3s", 16, "success_rate is in a share, and `3s` is not", "units: %"},
		{"throughput within 20 of deluge", 19, "a share from 0 to below 100% expected, not `20`", "such as 5%"},
		{"no worse than BASE by 150%", 23, "a share from 0 to below 100% expected, not `150%`", ""},
		{"ttfb_p50 < 2s where storage > ram", 29, "`sync.storage` has no order", "only compare with =="},
		{"throughput within 20% of delug", 26, "the run has no system `delug`", "did you mean `deluge`?"},
		{"commits no worse than BASE", 9, "`commits` is for information", ""},
		{"ttfb_p50 < 2s where storag == ram", 21, "`storag` is no factor", "did you mean `storage`?"},
		{"ttfb_p50 < 2s where storage == tape", 32, "`sync.storage`: it has no level `tape`", "levels: disk, ram"}} {
		_, err := Parse(c.rule, names, 0.05)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if e.At != c.at || !strings.Contains(e.Msg, c.msg) || !strings.Contains(e.Hint(), c.fix) {
			t.Errorf("%s: column %d, %q, hint %q; want column %d, %q, %q", c.rule, e.At, e.Msg, e.Hint(),
				c.at, c.msg, c.fix)
		}
	}
	for _, text := range []string{"", "ttfb_p50 200ms", "ttfb_p50 == 200ms", "ttfb_p50 < fast", "ttfb_p50 <",
		"throughput > 1kB/s,success >= 9%", "throughput within 20% deluge", "no worse then BASE",
		"no worse than deluge", "ttfb_p50 < 2s for ever"} {
		if _, err := Parse(text, names, 0.05); err == nil || !strings.Contains(err.(*Error).Fix, "forms: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	alone := names
	alone.Base = false
	if _, err := Parse("no worse than BASE", alone, 0.05); err == nil ||
		!strings.Contains(err.Error(), "gate, column 15: there is no base run") {
		t.Error(err)
	}
}
