// Package export writes the rows of a run for other programs: trials as CSV, Parquet and the Go
// benchmark format, and operations, of which there may be many, streamed as CSV or Parquet. The
// other tables of run.db can be read with SQL.
package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/record"
)

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
