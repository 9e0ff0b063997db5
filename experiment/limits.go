package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// judged are the keys of [Limits] by which a trial is judged after it has ended, so
// that a finished run can be judged again by other values.
var judged = []string{"others", "machine"}

// Set changes limits of a finished run by --set arguments such as limits.others=none.
// Limits that acted while the run was executed are refused: nothing recorded says
// what another value would have done.
func (l *Limits) Set(sets []string) error {
	for _, arg := range sets {
		path, text, ok := strings.Cut(arg, "=")
		key, isLimit := strings.CutPrefix(strings.TrimSpace(path), "limits.")
		if !ok || !isLimit || !slices.Contains(judged, key) {
			return fmt.Errorf("--set %s: a finished run can be judged again by limits.%s only, such as --set limits.%s=none",
				arg, strings.Join(judged, " and limits."), judged[0])
		}
		f := tableOf(reflect.TypeFor[Limits]()).field(key)
		if err := f.parse(strings.TrimSpace(text), reflect.ValueOf(l).Elem().Field(f.index)); err != nil {
			return fmt.Errorf("--set %s: %w", arg, err)
		}
	}
	return nil
}
