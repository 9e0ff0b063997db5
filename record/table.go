package record

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"
)

// table says how values of T lie in a table of run.db: its columns, and the
// fields of T that they hold, in the same order. Writing and reading use both.
type table[T any] struct {
	name    string
	key     string // orders the rows of a trial
	columns string
	fields  func(*T) []any // pointers: arguments of an INSERT, destinations of a SELECT
	insert  string
	page    int // rows read at a time
}

// newTable makes a table. The columns that are given are no fields of T: they are
// written from the arguments of [put]. A row of a key that is there fails, unless conflict
// says what to do.
func newTable[T any](name, key, given, columns, conflict string, fields func(*T) []any) *table[T] {
	all := given + columns
	return &table[T]{
		name: name, key: key, columns: columns, fields: fields, page: 200,
		insert: fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s) %s", name, all, strings.Repeat(", ?",
			strings.Count(all, ",")), conflict),
	}
}

// replacing has a row take the place of one of the same key.
func (t *table[T]) replacing() *table[T] {
	t.insert = strings.Replace(t.insert, "INSERT", "INSERT OR REPLACE", 1)
	return t
}

// paged reads other than the usual number of rows at a time.
func (t *table[T]) paged(rows int) *table[T] {
	t.page = rows
	return t
}

// put writes a row into the open transaction.
func put[T any](r *Run, t *table[T], v *T, given ...any) error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.exec(t.insert, append(given, t.fields(v)...)...)
}

// queryer is a database, a connection to it or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// list reads rows in the order of their key, the last of which it gives, too; a
// limit of -1 is none.
func list[T any](db queryer, t *table[T], where string, limit int, args ...any) (all []T, last int64, err error) {
	query := fmt.Sprintf("SELECT %[1]s, %[2]s FROM %[3]s WHERE %[4]s ORDER BY %[1]s LIMIT %[5]d", t.key, t.columns,
		t.name, where, limit)
	err = eachRow(db, query, args, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(append([]any{&last}, t.fields(&v)...)...)
		all = append(all, v)
		return err
	})
	return all, last, err
}

// stream reads the rows of a trial whose key is above after, in their order and
// in constant memory. After an error it ends. No transaction stays open while the
// caller works, which would keep a writer's log from shrinking.
func stream[T any](r *Reader, t *table[T], trial, after int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, last, err := list(r.db, t, "trial = ? AND "+t.key+" > ?", t.page, trial, after)
			if err != nil {
				var none T
				yield(none, r.errorf(fmt.Sprintf("%s of trial %d", t.name, trial), err))
				return
			}
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if len(page) < t.page {
				return
			}
			after = last
		}
	}
}

func eachRow(db queryer, query string, args []any, fn func(*sql.Rows) error) error {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// The types below are fields whose columns have another form.

// number is NULL when it is not a number.
type number struct{ v *float64 }

func (n number) Value() (driver.Value, error) { return *n.v, nil } // SQLite makes NULL of NaN

func (n number) Scan(from any) error {
	var v sql.NullFloat64
	err := v.Scan(from)
	if *n.v = v.Float64; !v.Valid {
		*n.v = math.NaN()
	}
	return err
}

func numbers(all ...*float64) []any {
	fields := make([]any, len(all))
	for i, v := range all {
		fields[i] = number{v}
	}
	return fields
}

// optional is NULL when it has the value that means none.
type optional[T ~int | ~int64] struct {
	v    *T
	none T
}

func (o optional[T]) Value() (driver.Value, error) {
	if *o.v == o.none {
		return nil, nil
	}
	return int64(*o.v), nil
}

func (o optional[T]) Scan(from any) error {
	var v sql.NullInt64
	err := v.Scan(from)
	if *o.v = T(v.Int64); !v.Valid {
		*o.v = o.none
	}
	return err
}

// moment is nanoseconds of wall-clock time.
type moment struct{ v *time.Time }

func (m moment) Value() (driver.Value, error) { return m.v.UnixNano(), nil }

func (m moment) Scan(from any) error {
	var ns sql.NullInt64
	err := ns.Scan(from)
	*m.v = time.Unix(0, ns.Int64).UTC()
	return err
}

// hexText is bytes that Go has as hexadecimal digits; NULL when there are none.
type hexText struct{ v *string }

func (h hexText) Value() (driver.Value, error) {
	if *h.v == "" {
		return nil, nil
	}
	return hex.DecodeString(*h.v)
}

func (h hexText) Scan(from any) error {
	b, _ := from.([]byte)
	*h.v = hex.EncodeToString(b)
	return nil
}

// jsonList is a JSON array, so that SQL can look into it.
type jsonList[T any] struct{ v *[]T }

func (l jsonList[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(append([]T{}, *l.v...))
	return string(b), err
}

func (l jsonList[T]) Scan(from any) error {
	var text sql.RawBytes
	switch from := from.(type) {
	case string:
		text = sql.RawBytes(from)
	case []byte:
		text = from
	}
	if err := json.Unmarshal(text, l.v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}
