package export

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// Benchfmt writes the valid trials in the Go benchmark format, one line
// per trial, so that a stock benchstat can compare systems, cells and runs:
//
//	benchstat -col /system trials.txt
func Benchfmt(r *analysis.Result, w io.Writer) error {
	out := benchfmt.NewWriter(w)
	config := []benchfmt.Config{{Key: "scenario", Value: []byte(r.Scenario), File: true},
		{Key: "plan", Value: []byte(r.Run.PlanHash), File: true}}
	for _, key := range []string{"plimsoll", "kernel", "cpu"} {
		if v := r.Environ(key); v != "" && !strings.ContainsAny(v, "\n\r") {
			config = append(config, benchfmt.Config{Key: key, Value: []byte(v), File: true})
		}
	}
	if !slices.ContainsFunc(r.Frame.Trials, func(t *analysis.Trial) bool { return t.Valid() && len(t.Metrics) > 0 }) {
		return errors.New("report: benchfmt is of trials that are over and valid, and this run has none")
	}
	for _, m := range r.Metrics {
		if m.Better == record.Neither {
			continue
		}
		err := out.Write(&benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: benchUnit(m),
			Key: "better"}, OrigUnit: benchUnit(m), Value: string(m.Better)})
		if err != nil {
			return err
		}
	}
	for _, t := range r.Frame.Trials {
		if !t.Valid() {
			continue
		}
		res := &benchfmt.Result{Config: config, Name: benchfmt.Name(benchName(r.Scenario, t.Info)), Iters: 1}
		for _, m := range r.Metrics {
			if v, ok := t.Metrics[m.Key]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) &&
				analysis.Supported(m.Key, t.Trial) && shown(r.Frame, t, m.Key) {
				res.Values = append(res.Values, benchfmt.Value{Value: v, Unit: benchUnit(m)})
			}
		}
		if len(res.Values) == 0 {
			continue
		}
		if err := out.Write(res); err != nil {
			return err
		}
	}
	return nil
}

// shown reports whether reports use the metric of a trial: not if that of others of its cell is censored or lacking.
func shown(f *analysis.Frame, t *analysis.Trial, metric string) bool {
	rows := f.Of(t.Info, metric)
	return analysis.Censored(rows) == 0 && slices.ContainsFunc(rows, func(r analysis.Row) bool { return r.Trial == t })
}

// benchUnit names a metric as a unit: benchstat keeps one table per unit.
func benchUnit(m record.Metric) string {
	unit := cmp.Or(map[string]string{"s": "sec", "ratio": "frac", "×": "x"}[m.Unit], m.Unit)
	return strings.ReplaceAll(m.Key, "_", "-") + "-" +
		strings.ReplaceAll(strings.ReplaceAll(unit, " ", "-"), "/s", "/sec")
}

// benchName is "Retrieve/concurrency=8/system=nginx".
func benchName(scenario string, c *analysis.Cell) string {
	b := words.Capital(scenario)
	for _, f := range c.Factors {
		if f.Path != "system" {
			b += "/" + benchWord(f.Label) + "=" + benchWord(f.Value)
		}
	}
	// A trailing -8 would read as GOMAXPROCS.
	return b + "/system=" + strings.ReplaceAll(benchWord(c.System), "-", "_")
}

func benchWord(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '/' || r == '=' {
			return '_'
		}
		return r
	}, s)
}
