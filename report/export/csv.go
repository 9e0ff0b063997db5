package export

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// CSV writes one line per trial, warm-up and invalid ones included;
// docs/results.md describes the columns.
func CSV(r *analysis.Result, w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"trial", "cell", "system", "baseline", "block", "warmup", "state", "valid", "invalid", "epoch", "seconds", "error"}
	factors := r.Frame.FactorPaths()
	head = append(head, factors...)
	for _, m := range r.Metrics {
		head = append(head, m.Key)
	}
	for _, o := range record.Outcomes() {
		head = append(head, opsColumn(o))
	}
	if err := out.Write(head); err != nil {
		return err
	}
	for _, t := range r.Frame.Trials {
		row := []string{strconv.FormatInt(t.ID, 10), t.Cell, t.Info.System, strconv.FormatBool(t.Info.Baseline), strconv.Itoa(t.Block), strconv.FormatBool(t.Warmup),
			string(t.State), strconv.FormatBool(t.Valid()), strings.Join(t.Invalid, " "), t.Epoch.UTC().Format(time.RFC3339Nano), plain(t.Seconds), t.Error}
		for _, p := range factors {
			row = append(row, t.Info.Value(p))
		}
		for _, m := range r.Metrics {
			v, ok := t.Metrics[m.Key]
			if !ok {
				v = math.NaN()
			}
			row = append(row, plain(v))
		}
		for _, o := range record.Outcomes() {
			row = append(row, strconv.FormatInt(t.Outcomes[o.String()], 10))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// plain is the shortest decimal that reads back as v; empty where it is not known.
func plain(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
