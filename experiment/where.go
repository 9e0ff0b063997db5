package experiment

import (
	"math"
	"reflect"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

const (
	dataSizePath = "data.size"
	rangePath    = "retrieve.range"
)

// factors are what conditions may name: the system, and all axes.
func (e *Experiment) factors() []gate.Factor {
	var names []string
	for _, s := range e.Systems {
		names = append(names, s.Name)
	}
	system := axisRef{path: systemPath, field: field{key: systemPath, typ: reflect.TypeFor[string](),
		enum: append(names, e.Dropped...)}}
	var all []gate.Factor
	for _, a := range append([]axisRef{system}, e.axes()...) {
		f, k := a.compared(), a.field.kind()
		all = append(all, gate.Factor{Path: a.path, Noun: k.noun, Unit: k.unit,
			Read: func(text string) (gate.Level, error) {
				v := reflect.New(f.typ).Elem()
				if err := f.parse(text, v); err != nil {
					wrong := err.(*unitError)
					return gate.Level{}, &gate.Error{Msg: wrong.msg, Fix: wrong.hint}
				}
				return levelOf(f, v), nil
			}})
	}
	return all
}

// conditions are those of `where`; each that cannot be read is given to fail.
func (e *Experiment) conditions(fail func(i int, err error)) (all []gate.Condition) {
	factors := e.factors()
	for i, src := range e.Where {
		c, err := gate.ParseCondition(src, factors)
		if err != nil {
			fail(i, err)
			continue
		}
		all = append(all, c)
	}
	return all
}

// compared is how values of the factor are read in a condition.
func (a axisRef) compared() field {
	f := a.field
	f.min, f.max = "", ""
	if f.compound() {
		f.typ, f.enum, f.zero = reflect.TypeFor[string](), []string{f.zero}, ""
		for i := range a.values.Len() {
			f.enum = append(f.enum, a.field.text(a.values.Index(i)))
		}
	}
	return f
}

// levelOf is the level of a value of f. Words that stand for no limit (unlimited) are above
// every number; words that leave a choice (auto) have no order.
func levelOf(f field, v reflect.Value) gate.Level {
	l := gate.Level{Text: f.text(v), Number: number(v)}
	switch {
	case f.zero == "unlimited" && v.IsZero():
		l.Number = math.Inf(1)
	case v.Kind() == reflect.String || f.kind().unit == "" || f.zero != "" && v.IsZero():
		l.Number = math.NaN()
	}
	return l
}
