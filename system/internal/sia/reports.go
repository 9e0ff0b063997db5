package sia

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// Report returns a call of a poll that returns what read finds in the answer at path.
func Report[T any](a *API, path string, query url.Values, read func(answer T) []system.Reading) system.Call {
	return system.Call{Name: path, Read: func(ctx context.Context) ([]system.Reading, error) {
		var answer T
		if err := a.Get(ctx, path, query, &answer); err != nil {
			return nil, err
		}
		return read(answer), nil
	}}
}

// Value returns a reading.
func Value(name string, value float64) system.Reading {
	return system.Reading{Name: name, Value: value}
}

// Field is a number in a report.
type Field struct {
	path, name string // path of the field, with a dot between an object and its field, and the name of its reading
	read       func(json.RawMessage, *system.Reading) error
	list       bool // whether null means an empty list
}

// Number is a numeric field.
func Number(path, name string) Field { return field(path, name, func(v float64) float64 { return v }) }

// Flag is a boolean field; its reading is 1 for true, else 0.
func Flag(path, name string) Field {
	return field(path, name, func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	})
}

// Length is the length of a list in a field.
func Length(path, name string) Field {
	f := field(path, name, func(all []json.RawMessage) float64 { return float64(len(all)) })
	f.list = true
	return f
}

func field[T any](path, name string, value func(T) float64) Field {
	return Field{path: path, name: name, read: func(text json.RawMessage, r *system.Reading) error {
		var v T
		err := json.Unmarshal(text, &v)
		r.Value = value(v)
		return err
	}}
}

// Money is a field with an amount in hastings.
func Money(path, name string) Field {
	return Field{path: path, name: name, read: func(text json.RawMessage, r *system.Reading) error {
		var h Hastings
		err := h.UnmarshalJSON(text)
		if h.Int != nil {
			*r = system.Money(name, h.Int)
		}
		return err
	}}
}

// Fields is a Report of plain fields. Fields that the answer lacks have no reading.
func Fields(a *API, path string, query url.Values, fields ...Field) system.Call {
	return Report(a, path, query, func(answer map[string]json.RawMessage) (out []system.Reading) {
		for _, f := range fields {
			object, text := answer, json.RawMessage(nil)
			for part := range strings.SplitSeq(f.path, ".") {
				text, object = object[part], nil
				_ = json.Unmarshal(text, &object) // fails for the last part, which is not an object
			}
			if text == nil || string(text) == "null" && !f.list {
				continue
			}
			r := system.Reading{Name: f.name}
			if err := f.read(text, &r); err != nil {
				r.Bad = err.Error()
			}
			out = append(out, r)
		}
		return out
	})
}
