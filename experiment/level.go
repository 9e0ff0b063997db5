package experiment

import (
	"fmt"
	"reflect"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Level reads text as a level of the factor at path, such as 300kB of
// data.size, whether or not the experiment has it. An error: there is no such
// factor in this experiment's scenario, or the text is none of its levels.
func (e *Experiment) Level(path, text string) (Factor, error) {
	for _, a := range e.axes() {
		if a.path != path {
			continue
		}
		v := reflect.New(a.field.typ).Elem()
		if err := a.field.parse(text, v); err != nil {
			return Factor{}, fmt.Errorf("%s: %w", path, err)
		}
		return factorOf(a, v), nil
	}
	if hint := suggest.DidYouMean(path, e.Paths()); hint != "" {
		return Factor{}, fmt.Errorf("`%s` is no factor of this experiment; %s", path, hint)
	}
	return Factor{}, fmt.Errorf("`%s` is no factor of this experiment", path)
}

// Paths are those of all factors of this experiment, whether or not they vary.
func (e *Experiment) Paths() []string {
	var all []string
	for _, a := range e.axes() {
		all = append(all, a.path)
	}
	return all
}

// Levels are those that the experiment has of the factor at path, one where it
// does not vary; nil where there is no such factor.
func (e *Experiment) Levels(path string) []Factor {
	for _, a := range e.axes() {
		if a.path != path {
			continue
		}
		levels := make([]Factor, a.values.Len())
		for i := range levels {
			levels[i] = factorOf(a, a.values.Index(i))
		}
		return levels
	}
	return nil
}
