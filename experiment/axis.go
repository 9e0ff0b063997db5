package experiment

// Axis is a field that may be given as a list: every value of the list is then
// a level of a factor, and the plan has a cell for each combination of levels.
// An empty Axis is a field that was not given and has no default.
type Axis[T any] []T

// One is the first value, the only one when the field is not a factor, or the
// zero value of an empty Axis.
func (a Axis[T]) One() T {
	var zero T
	if len(a) == 0 {
		return zero
	}
	return a[0]
}

// isAxis marks the type for the walkers over the struct tags.
func (Axis[T]) isAxis() {}

type axis interface{ isAxis() }
