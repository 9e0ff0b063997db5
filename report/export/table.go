package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/record"
)

// tableOf calls do with the rows of a table that is exported, in their order. The
// columns are the fields of T, named by their parquet tags, in CSV as well.
type tableOf[T any] func(run *record.Reader, do func(*T) error) error

// ofTrials makes a table from what is recorded of each trial.
func ofTrials[R, T any](
	read func(*record.Reader, int64) iter.Seq2[R, error], rows func(t *record.Trial, v *R, do func(*T) error) error,
) tableOf[T] {
	return func(run *record.Reader, do func(*T) error) error {
		trials, err := run.Trials()
		if err != nil {
			return err
		}
		for i := range trials {
			for v, err := range read(run, trials[i].ID) {
				if err == nil {
					err = rows(&trials[i], &v, do)
				}
				if err != nil {
					return fmt.Errorf("export trial %d: %w", trials[i].ID, err)
				}
			}
		}
		return nil
	}
}

// csvTo streams the rows as CSV, in constant memory.
func (rows tableOf[T]) csvTo(run *record.Reader, w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, reflect.TypeFor[T]().NumField())
	for i := range line {
		line[i], _, _ = strings.Cut(reflect.TypeFor[T]().Field(i).Tag.Get("parquet"), ",")
	}
	if err := out.Write(line); err != nil {
		return err
	}
	err := rows(run, func(row *T) error {
		for i := range line {
			line[i] = textOf(reflect.ValueOf(row).Elem().Field(i))
		}
		return out.Write(line)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// textOf is a value of a column in CSV; empty where it is not known.
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
		return plain(v.Float())
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// rowGroup is how many rows a row group of a Parquet file holds: what the writer keeps
// in memory.
const rowGroup = 1 << 17

// parquetTo streams the rows as Parquet, in constant memory.
func (rows tableOf[T]) parquetTo(run *record.Reader, w io.Writer) error {
	out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))
	batch := make([]T, 0, record.BlockSize)
	err := rows(run, func(row *T) error {
		if batch = append(batch, *row); len(batch) < cap(batch) {
			return nil
		}
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	})
	if err != nil {
		return err
	}
	if _, err := out.Write(batch); err != nil {
		return err
	}
	return out.Close()
}

// Tables are what operations, a load test's polls and jobs, and a swarm's marks can be
// exported as, by name of the format.
func Tables() map[string]func(*record.Reader, io.Writer) error {
	return map[string]func(*record.Reader, io.Writer) error{
		"ops-csv": opTable.csvTo, "ops-parquet": opTable.parquetTo,
		"polls-csv": pollTable.csvTo, "polls-parquet": pollTable.parquetTo,
		"calls-csv": callTable.csvTo, "calls-parquet": callTable.parquetTo,
		"readings-csv": readingTable.csvTo, "readings-parquet": readingTable.parquetTo,
		"jobs-csv": jobTable.csvTo, "jobs-parquet": jobTable.parquetTo,
		"marks-csv": markTable.csvTo, "marks-parquet": markTable.parquetTo,
	}
}
