// Package export writes the rows of a run for other programs: trials as CSV, Parquet and the Go
// benchmark format, and operations, of which there may be many, streamed as CSV or Parquet. The
// other tables of run.db can be read with SQL.
package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// trialColumn is a column of the table of trials.
type trialColumn struct {
	name string
	kind parquet.Node
	of   func(*analysis.Trial) any
	text func(*analysis.Trial) string // in CSV; nil: of in words
}

// trialColumns are the columns of CSV and Parquet; docs/results.md describes them.
func trialColumns(r *analysis.Result) []trialColumn {
	text, number := parquet.String(), parquet.Optional(parquet.Leaf(parquet.DoubleType))
	integer, flag := parquet.Int(64), parquet.Leaf(parquet.BooleanType)
	all := []trialColumn{
		{"trial", integer, func(t *analysis.Trial) any { return t.ID }, nil},
		{"cell", text, func(t *analysis.Trial) any { return t.Cell }, nil},
		{"system", text, func(t *analysis.Trial) any { return t.Info.System }, nil},
		{"baseline", flag, func(t *analysis.Trial) any { return t.Info.Baseline }, nil},
		{"block", integer, func(t *analysis.Trial) any { return int64(t.Block) }, nil},
		{"warmup", flag, func(t *analysis.Trial) any { return t.Warmup }, nil},
		{"state", text, func(t *analysis.Trial) any { return string(t.State) }, nil},
		{"valid", flag, func(t *analysis.Trial) any { return t.Valid() }, nil},
		{"invalid", text, func(t *analysis.Trial) any { return strings.Join(t.Invalid, " ") }, nil},
		{"epoch", parquet.Timestamp(parquet.Nanosecond), func(t *analysis.Trial) any { return t.Epoch.UnixNano() },
			func(t *analysis.Trial) string { return t.Epoch.UTC().Format(time.RFC3339Nano) }},
		{"seconds", number, func(t *analysis.Trial) any { return known(t.Seconds, true) }, nil},
		{"error", text, func(t *analysis.Trial) any { return t.Error }, nil},
	}
	words := map[string]bool{}
	for _, c := range r.Cells {
		for _, f := range c.Factors {
			words[f.Path] = words[f.Path] || f.Unit == ""
		}
	}
	for _, p := range r.Frame.FactorPaths() {
		c := trialColumn{name: p, kind: number, text: func(t *analysis.Trial) string { return t.Info.Value(p) }}
		c.of = func(t *analysis.Trial) any {
			f, has := t.Info.Factor(p)
			return known(f.Number, has)
		}
		if words[p] {
			c.kind = text
			c.of = func(t *analysis.Trial) any { f, _ := t.Info.Factor(p); return f.Value }
		}
		all = append(all, c)
	}
	for _, m := range r.Metrics {
		all = append(all, trialColumn{m.Key, number, func(t *analysis.Trial) any {
			v, has := t.Metrics[m.Key]
			return known(v, has && analysis.Supported(m.Key, t.Trial))
		}, nil})
	}
	for _, o := range record.Outcomes() {
		name := "ops_" + strings.ReplaceAll(o.String(), "-", "_")
		all = append(all, trialColumn{name, integer, func(t *analysis.Trial) any { return t.Outcomes[o.String()] },
			nil})
	}
	return all
}

// known returns nil for a number that there is not, and for NaN and infinities.
func known(v float64, has bool) *float64 {
	if !has || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// CSV writes one line per trial, including warm-up and invalid ones.
func CSV(r *analysis.Result, w io.Writer) error {
	columns, lines := trialColumns(r), make([][]string, 1+len(r.Frame.Trials))
	for _, c := range columns {
		lines[0] = append(lines[0], c.name)
		for i, t := range r.Frame.Trials {
			if c.text != nil {
				lines[i+1] = append(lines[i+1], c.text(t))
			} else {
				lines[i+1] = append(lines[i+1], textOf(reflect.ValueOf(c.of(t))))
			}
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// Parquet writes one row per trial with the columns of [CSV]; unknown numbers are null.
func Parquet(r *analysis.Result, w io.Writer) error {
	columns, group := trialColumns(r), parquet.Group{}
	for _, c := range columns {
		group[c.name] = c.kind
	}
	out := parquet.NewGenericWriter[map[string]any](w, parquet.NewSchema("trials", group),
		parquet.Compression(&parquet.Zstd))
	for _, t := range r.Frame.Trials {
		row := map[string]any{}
		for _, c := range columns {
			v := c.of(t)
			if number, is := v.(*float64); is && number == nil {
				continue // a plain 0 would be written as null, and a nil pointer is none
			}
			row[c.name] = v
		}
		if _, err := out.Write([]map[string]any{row}); err != nil {
			return err
		}
	}
	return out.Close()
}

// OpRow is one operation; docs/results.md describes the columns.
type OpRow struct {
	Trial     int64  `parquet:"trial,delta"`
	Cell      string `parquet:"cell,dict"`
	Block     int32  `parquet:"block"`
	Warmup    bool   `parquet:"warmup"`
	Kind      string `parquet:"kind,dict"`
	Outcome   string `parquet:"outcome,dict"`
	Status    int32  `parquet:"status"`
	Class     string `parquet:"class,dict"`
	Worker    int64  `parquet:"worker"`
	Object    int64  `parquet:"object"`
	Offset    int64  `parquet:"offset"`
	Length    int64  `parquet:"length"`
	Bytes     int64  `parquet:"bytes"`
	Intended  int64  `parquet:"intended_ns,delta"`
	Start     int64  `parquet:"start_ns,delta"`
	FirstByte int64  `parquet:"first_byte_ns,delta"`
	LastByte  int64  `parquet:"last_byte_ns,delta"`
}

// operations calls do with all operations of a run, in order.
func operations(run *record.Reader, do func(OpRow) error) error {
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	for _, t := range trials {
		for op, err := range run.Ops(t.ID) {
			if err == nil {
				err = do(OpRow{t.ID, t.Cell, int32(t.Block), t.Warmup, op.Kind.String(), op.Outcome.String(),
					int32(op.Status), op.Class, int64(op.Worker), int64(op.Object), op.Offset, op.Length, op.Bytes,
					op.Intended, op.Start, op.FirstByte, op.LastByte})
			}
			if err != nil {
				return fmt.Errorf("export trial %d: %w", t.ID, err)
			}
		}
	}
	return nil
}

// OperationsCSV streams operations as CSV, in constant memory.
func OperationsCSV(run *record.Reader, w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, reflect.TypeFor[OpRow]().NumField())
	for i := range line {
		line[i], _, _ = strings.Cut(reflect.TypeFor[OpRow]().Field(i).Tag.Get("parquet"), ",")
	}
	if err := out.Write(line); err != nil {
		return err
	}
	err := operations(run, func(row OpRow) error {
		for i := range line {
			line[i] = textOf(reflect.ValueOf(row).Field(i))
		}
		return out.Write(line)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// textOf formats a value for CSV; empty if unknown.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// rowGroup is the number of rows in a row group of a Parquet file, which the writer keeps in
// memory.
const rowGroup = 1 << 17

// OperationsParquet streams operations as Parquet, in constant memory.
func OperationsParquet(run *record.Reader, w io.Writer) error {
	out := parquet.NewGenericWriter[OpRow](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))
	batch := make([]OpRow, 0, record.BlockSize)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	err := operations(run, func(row OpRow) error {
		if batch = append(batch, row); len(batch) < cap(batch) {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	return out.Close()
}
