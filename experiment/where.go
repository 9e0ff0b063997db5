package experiment

import (
	"fmt"
	"math"
	"reflect"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

const (
	dataSizePath = "data.size"
	rangePath    = "retrieve.range"
)

// factors returns the factors that conditions may name: the system, and all axes.
func (e *Experiment) factors() []gate.Factor {
	var all []gate.Factor
	for _, a := range e.axes() {
		f, k := a.compared(), a.field.kind()
		all = append(all, gate.Factor{Path: a.path, Noun: k.noun, Unit: k.unit,
			Read: func(text string) (gate.Level, error) {
				v := reflect.New(f.typ).Elem()
				if err := f.parse(text, v); err != nil {
					wrong := err.(*Error)
					return gate.Level{}, &gate.Error{Msg: wrong.Message, Fix: wrong.Hint}
				}
				return levelOf(f, v), nil
			}})
	}
	return all
}

// SystemNames returns the names of the systems, in order.
func (e *Experiment) SystemNames() []string {
	return each(e.Systems, func(s SystemUse) string { return s.Name })
}

// conditions parses `where`.
func (e *Experiment) conditions() (all []gate.Condition, bad Errors) {
	factors := e.factors()
	for i, src := range e.Where {
		c, err := gate.ParseCondition(src, factors)
		bad = append(bad, expression("where", i, err)...)
		all = append(all, c)
	}
	return all, bad
}

// expression returns the mistake in a text of a list, if err is not nil.
func expression(list string, i int, err error) Errors {
	if err == nil {
		return nil
	}
	return Errors{{Message: err.Error(), Hint: err.(*gate.Error).Fix, path: fmt.Sprintf("%s[%d]", list, i)}}
}

// compared returns the field that parses values of the factor in a condition.
func (a axis) compared() field {
	f := a.field
	f.min, f.max = "", ""
	if f.compound() {
		f.typ, f.zero = reflect.TypeFor[string](), ""
		f.enum = append([]string{a.field.zero}, each(a.levels, a.field.text)...)
	}
	return f
}

// levelOf returns the level of a value of f. Words for no limit (unlimited) are above every number;
// words that leave a choice (auto) have no order.
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
