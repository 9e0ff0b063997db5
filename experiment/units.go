package experiment

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

// A scalar is a value written as one YAML scalar, with its unit.
type scalar interface {
	// parse sets the value from the text of a file, strictly.
	parse(text string) error
	// String is the canonical text; parse reads it back to the same value.
	String() string
	// describe tells the schema, the reference and the errors what is allowed.
	describe() scalarKind
}

// scalarKind describes one type of scalar.
type scalarKind struct {
	name    string // "size"
	noun    string // "a size such as 10MiB"
	unit    string // base unit of the number: "B"
	pattern string // ECMA 262, anchored; what editors check
	doc     string // for the reference page
}

// unitError is a value that could not be read. The reader's place is added by
// the caller.
type unitError struct{ msg, hint string }

func (e *unitError) Error() string {
	if e.hint == "" {
		return e.msg
	}
	return e.msg + " (" + e.hint + ")"
}

func badUnit(hint, format string, args ...any) error {
	return &unitError{msg: fmt.Sprintf(format, args...), hint: hint}
}

var numberRE = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)(.*)$`)

// splitNumber splits "1.5MiB" into 3/2 and "MiB".
func splitNumber(s string) (num *big.Rat, text, unit string, ok bool) {
	m := numberRE.FindStringSubmatch(s)
	// The length limit keeps big.Rat from being asked for absurd precision.
	if m == nil || len(m[1]) > 40 {
		return nil, "", "", false
	}
	num, ok = new(big.Rat).SetString(m[1])
	return num, m[1], m[2], ok
}

// signHint explains a leading sign or a space before the unit: two things that
// people write and that no type here allows.
func signHint(s string, parse func(string) error) (hint string) {
	switch {
	case strings.HasPrefix(s, "-"):
		return "it cannot be negative"
	case strings.HasPrefix(s, "+"):
		return "leave the + away"
	case regexp.MustCompile(`^[0-9.]+\s+\S+$`).MatchString(s):
		joined := strings.Join(strings.Fields(s), "")
		var wrong *unitError
		if errors.As(parse(joined), &wrong) {
			return wrong.hint
		}
		return "write `" + joined + "`, without the space"
	}
	return ""
}

// ratFloat is the nearest float64, refusing what float64 cannot hold.
func ratFloat(r *big.Rat) (float64, bool) {
	f, _ := r.Float64()
	return f, !math.IsInf(f, 0)
}
