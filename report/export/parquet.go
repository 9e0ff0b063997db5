package export

import (
	"io"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// Parquet writes one row per trial with the columns of [CSV];
// numbers that are not known are null.
func Parquet(r *analysis.Result, w io.Writer) error {
	text, number, integer, flag := parquet.String(), parquet.Optional(parquet.Leaf(parquet.DoubleType)), parquet.Int(64), parquet.Leaf(parquet.BooleanType)
	group := parquet.Group{"trial": integer, "cell": text, "system": text, "baseline": flag, "block": integer, "warmup": flag, "state": text, "valid": flag,
		"invalid": text, "epoch": parquet.Timestamp(parquet.Nanosecond), "seconds": number, "error": text}
	words := map[string]bool{}
	for _, c := range r.Cells {
		for _, f := range c.Factors {
			words[f.Path] = words[f.Path] || f.Unit == ""
		}
	}
	for _, p := range r.Frame.FactorPaths() {
		group[p] = number
		if words[p] {
			group[p] = text
		}
	}
	for _, m := range r.Metrics {
		group[m.Key] = number
	}
	for _, o := range record.Outcomes() {
		group[opsColumn(o)] = integer
	}
	schema := parquet.NewSchema("trials", group)
	out := parquet.NewGenericWriter[map[string]any](w, schema, parquet.Compression(&parquet.Zstd))
	for _, t := range r.Frame.Trials {
		row := map[string]any{"trial": t.ID, "cell": t.Cell, "system": t.Info.System, "baseline": t.Info.Baseline, "block": int64(t.Block), "warmup": t.Warmup,
			"state": string(t.State), "valid": t.Valid(), "invalid": strings.Join(t.Invalid, " "), "epoch": t.Epoch.UnixNano(), "error": t.Error}
		put := func(key string, v float64) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				row[key] = &v // a plain 0 would be written as null
			}
		}
		put("seconds", t.Seconds)
		for _, p := range r.Frame.FactorPaths() {
			f, ok := t.Info.Factor(p)
			switch {
			case words[p]:
				row[p] = f.Value
			case ok:
				put(p, f.Number)
			}
		}
		for _, m := range r.Metrics {
			if v, ok := t.Metrics[m.Key]; ok {
				put(m.Key, v)
			}
		}
		for _, o := range record.Outcomes() {
			row[opsColumn(o)] = t.Outcomes[o.String()]
		}
		if _, err := out.Write([]map[string]any{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

func opsColumn(o record.Outcome) string { return "ops_" + strings.ReplaceAll(o.String(), "-", "_") }
