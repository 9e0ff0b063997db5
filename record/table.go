package record

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// table maps values of T to rows of a table of run.db: each field with a tag `db:"column"` is in
// that column. It is used for writing and for reading.
type table[T any] struct {
	name    string
	key     string // orders the rows of a trial
	columns []string
	fields  []field // of the columns
	insert  string
}

// field is a column of a row: a field of T or, for an array by outcomes, one of its elements.
type field struct {
	reflect.StructField
	outcome int
}

// page is how many rows are read at a time: a block of operations takes about 0.1 MB.
const page = 100

// newTable creates a table. The columns in given are not fields of T: their values are
// arguments of [put]. Inserting an existing key fails, unless conflict says what to do.
func newTable[T any](name, key, given, conflict string) *table[T] {
	t := &table[T]{name: name, key: key}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		switch column := f.Tag.Get("db"); column {
		case "":
		case "outcomes":
			for o, name := range outcomeNames {
				t.columns = append(t.columns, strings.ReplaceAll(name, "-", "_"))
				t.fields = append(t.fields, field{f, o})
			}
		default:
			t.columns, t.fields = append(t.columns, column), append(t.fields, field{f, 0})
		}
	}
	all := given + strings.Join(t.columns, ", ")
	t.insert = fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s) %s", name, all,
		strings.Repeat(", ?", strings.Count(all, ",")), conflict)
	return t
}

// replacing makes rows replace those with the same key.
func (t *table[T]) replacing() *table[T] {
	t.insert = strings.Replace(t.insert, "INSERT", "INSERT OR REPLACE", 1)
	return t
}

// stored returns the arguments to INSERT a row, or the destinations of a SELECT.
func (t *table[T]) stored(row *T) []any {
	all := make([]any, len(t.fields))
	for i, f := range t.fields {
		v := reflect.ValueOf(row).Elem().FieldByIndex(f.Index)
		if v.Kind() == reflect.Array {
			v = v.Index(f.outcome)
		}
		all[i] = stored(v, f.Tag)
	}
	return all
}

// put writes a row into the open transaction.
func put[T any](r *Run, t *table[T], v *T, given ...any) error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.exec(t.insert, append(given, t.stored(v)...)...)
}

// putAll writes rows into the open transaction.
func putAll[T any](r *Run, t *table[T], rows []T, given ...any) error {
	for i := range rows {
		if err := put(r, t, &rows[i], given...); err != nil {
			return err
		}
	}
	return nil
}

// queryer is a database, a connection to it or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// list reads rows in the order of their key, and returns the last key, too. A limit of -1
// means no limit.
func list[T any](db queryer, t *table[T], where string, limit int, args ...any) (all []T, last int64, err error) {
	query := fmt.Sprintf("SELECT %[1]s, %[2]s FROM %[3]s WHERE %[4]s ORDER BY %[1]s LIMIT %[5]d", t.key,
		strings.Join(t.columns, ", "), t.name, where, limit)
	err = eachRow(db, query, args, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(append([]any{&last}, t.stored(&v)...)...)
		all = append(all, v)
		return err
	})
	return all, last, err
}

// stream reads the rows of a trial whose key is above after, in order and in constant memory.
// After an error it ends. It keeps no transaction open while the caller works, which would
// prevent a writer's log from shrinking.
func stream[T any](r *Reader, t *table[T], trial, after int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			rows, last, err := list(r.db, t, "trial = ? AND "+t.key+" > ?", page, trial, after)
			if err != nil {
				var none T
				yield(none, r.errorf(fmt.Sprintf("%s of trial %d", t.name, trial), err))
				return
			}
			for _, v := range rows {
				if !yield(v, nil) {
					return
				}
			}
			if len(rows) < page {
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

// stored converts a field to its form in the database; most stay unchanged.
func stored(field reflect.Value, tag reflect.StructTag) any {
	at := field.Addr().Interface()
	if none, err := strconv.ParseInt(tag.Get("none"), 10, 64); err == nil {
		return optional{field, none}
	}
	switch v := at.(type) {
	case *float64:
		return number{v}
	case *time.Time:
		return moment{v}
	case *[]string, *[]PollCall, *[]Reading:
		return jsonList{v}
	}
	return at
}

// number is stored as NULL if it is NaN.
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

// optional is an integer that is stored as NULL if it has the value that means none.
type optional struct {
	v    reflect.Value
	none int64
}

func (o optional) Value() (driver.Value, error) {
	return sql.NullInt64{Int64: o.v.Int(), Valid: o.v.Int() != o.none}.Value()
}

func (o optional) Scan(from any) error {
	var v sql.NullInt64
	err := v.Scan(from)
	if o.v.SetInt(v.Int64); !v.Valid {
		o.v.SetInt(o.none)
	}
	return err
}

// moment is a wall-clock time in nanoseconds.
type moment struct{ v *time.Time }

func (m moment) Value() (driver.Value, error) { return m.v.UnixNano(), nil }

func (m moment) Scan(from any) error {
	var ns sql.NullInt64
	err := ns.Scan(from)
	*m.v = time.Unix(0, ns.Int64).UTC()
	return err
}

// jsonList is a JSON array, so that SQL can query it.
type jsonList struct{ v any } // a pointer to a slice

func (l jsonList) Value() (driver.Value, error) {
	if reflect.ValueOf(l.v).Elem().Len() == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(l.v)
	return string(b), err
}

func (l jsonList) Scan(from any) error {
	text, _ := from.(string)
	if err := json.Unmarshal([]byte(text), l.v); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}
