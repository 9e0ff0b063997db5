package experiment

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// Duration is a length of time. In JSON it is a number of seconds.
type Duration time.Duration

// Std is d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds is d in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

var durationRE = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

func (d *Duration) parse(s string) error {
	if s == "0" {
		*d = 0
		return nil
	}
	if !durationRE.MatchString(s) {
		return badUnit(durationHint(s), "%q is not %s", s, d.describe().noun)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return badUnit("at most 292 years", "%q is too long", s)
	}
	*d = Duration(v)
	return nil
}

func durationHint(s string) string {
	if h := signHint(s, new(Duration).parse); h != "" {
		return h
	}
	_, text, unit, ok := splitNumber(s)
	switch {
	case !ok:
		return ""
	case unit == "":
		return "add a unit: `" + text + "ms` or `" + text + "s`"
	case unit == "d" || strings.HasPrefix(unit, "day"):
		return "days are written in hours: `24h`"
	case strings.HasPrefix(unit, "sec"):
		return "did you mean `" + text + "s`?"
	case strings.HasPrefix(unit, "min"):
		return "did you mean `" + text + "m`?"
	case strings.HasPrefix(unit, "msec"), strings.HasPrefix(unit, "milli"):
		return "did you mean `" + text + "ms`?"
	}
	return "units are ns, us, ms, s, m, h, as in 1m30s"
}

// String is like the standard library's, without parts that are zero: "1m",
// not "1m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	s = strings.Replace(s, "µs", "us", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalJSON writes exact decimal seconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	s := new(big.Rat).SetFrac64(int64(d), int64(time.Second)).FloatString(9)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".")), nil
}

// UnmarshalJSON reads seconds, exactly to the nanosecond.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	r, ok := new(big.Rat).SetString(n.String())
	if len(n) > 40 || !ok {
		return badUnit("", "%s is not a number of seconds", b)
	}
	r.Mul(r, new(big.Rat).SetInt64(int64(time.Second)))
	if !r.IsInt() || !r.Num().IsInt64() {
		return badUnit("", "%s is not a whole number of nanoseconds within 292 years", b)
	}
	*d = Duration(r.Num().Int64())
	return nil
}

func (Duration) describe() scalarKind {
	return scalarKind{
		name:    "duration",
		noun:    "a duration such as 40ms",
		unit:    "s",
		pattern: `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`,
		doc:     "A length of time with units `ns`, `us`, `ms`, `s`, `m`, `h`: `40ms`, `1m30s`.",
	}
}
