package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/record"
)

// OpsCSV streams every operation of a run, one line each, in constant
// memory. Times are nanoseconds since the trial's epoch.
func OpsCSV(run *record.Reader, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"trial", "cell", "block", "warmup", "kind", "outcome", "status", "class", "worker", "object", "offset", "length", "bytes", "intended_ns", "start_ns", "first_byte_ns", "last_byte_ns"}); err != nil {
		return err
	}
	row := make([]string, 17)
	return eachOp(run, func(t *record.Trial, op *record.Op) error {
		row[0], row[1], row[2], row[3] = strconv.FormatInt(t.ID, 10), t.Cell, strconv.Itoa(t.Block), strconv.FormatBool(t.Warmup)
		row[4], row[5], row[6], row[7] = op.Kind.String(), op.Outcome.String(), strconv.Itoa(int(op.Status)), op.Class
		row[8], row[9] = strconv.FormatUint(uint64(op.Worker), 10), strconv.FormatUint(uint64(op.Object), 10)
		for i, v := range []int64{op.Offset, op.Length, op.Bytes, op.Intended, op.Start, op.FirstByte, op.LastByte} {
			row[10+i] = strconv.FormatInt(v, 10)
		}
		return out.Write(row)
	}, func() error { out.Flush(); return out.Error() })
}

// OpRow is one operation in Parquet; docs/results.md describes the columns.
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

// opsGroup is how many operations a row group of the Parquet file holds: what
// the writer keeps in memory.
const opsGroup = 1 << 17

// OpsParquet streams every operation of a run in constant memory.
func OpsParquet(run *record.Reader, w io.Writer) error {
	out := parquet.NewGenericWriter[OpRow](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(opsGroup))
	batch := make([]OpRow, 0, record.BlockSize)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	err := eachOp(run, func(t *record.Trial, op *record.Op) error {
		batch = append(batch, OpRow{t.ID, t.Cell, int32(t.Block), t.Warmup, op.Kind.String(), op.Outcome.String(), int32(op.Status), op.Class, int64(op.Worker), int64(op.Object),
			op.Offset, op.Length, op.Bytes, op.Intended, op.Start, op.FirstByte, op.LastByte})
		if len(batch) == cap(batch) {
			return flush()
		}
		return nil
	}, flush)
	if err != nil {
		return err
	}
	return out.Close()
}

func eachOp(run *record.Reader, each func(*record.Trial, *record.Op) error, done func() error) error {
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	for i := range trials {
		for op, err := range run.Ops(trials[i].ID) {
			if err != nil {
				return err
			}
			if err := each(&trials[i], &op); err != nil {
				return fmt.Errorf("report: write operations of trial %d: %w", trials[i].ID, err)
			}
		}
	}
	return done()
}
