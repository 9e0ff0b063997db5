package experiment

import (
	_ "embed"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// A scalar is a value written as one YAML scalar, with its unit.
type scalar interface {
	// parse sets the value from the text of a file, strictly. It reads what fmt.Sprint returns for a value back to
	// the same value.
	parse(text string) error
}

// scalarKind describes types of scalars.
type scalarKind struct {
	name    string // "size"
	noun    string // "a size such as 10MiB"
	unit    string // base unit of the number: "B"
	pattern string // ECMA 262, anchored; for editors
	doc     string // for the reference page
}

//go:embed kinds.tsv
var kindTable string

// kinds returns the kinds of scalars by the names of their types.
var kinds = sync.OnceValue(func() map[string]scalarKind {
	all := map[string]scalarKind{}
	for line := range strings.Lines(kindTable) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for typ := range strings.SplitSeq(f[0], ",") {
			all[typ] = scalarKind{f[1], f[2], f[3], f[4], f[5]}
		}
	}
	return all
})

// notA returns the mistake that a text is not a value of a type.
func notA(typ, text, hint string) error {
	return mistake(hint, "%q is not %s", text, kinds()[typ].noun)
}

type unitSize struct {
	name string
	size int64
}

var binaryUnits = []unitSize{{"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
var decimalUnits = []unitSize{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

// quantity describes how values of one type are written.
type quantity struct {
	kind     string            // type in kinds.tsv
	units    []unitSize        // sizes are in the smallest unit
	per      int64             // smallest units per base unit
	spelling *strings.Replacer // replaces alternative spellings of units
	sums     bool              // several may follow one another (1m30s), and 0 needs no unit
	positive bool              // 0 is refused
	largest  int64             // in the base unit
	most     string            // largest in words
}

var (
	bytesQuantity = &quantity{
		kind:  "Bytes",
		units: slices.Concat([]unitSize{{"", 1}, {"B", 1}}, binaryUnits, decimalUnits),
		per:   1, largest: 8191 << 50, most: "8191PiB", spelling: strings.NewReplacer("KB", "kB"),
	}
	rateQuantity = &quantity{
		kind:  "BitRate",
		units: []unitSize{{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}},
		per:   1, largest: 1e15, most: "1000Tbit", positive: true,
		spelling: strings.NewReplacer("Kbit/s", "kbit", "Kbit", "kbit", "Kbps", "kbit", "bit/s", "bit", "bps", "bit"),
	}
	durationQuantity = &quantity{
		kind:  "Duration",
		units: []unitSize{{"d", 86400e9}, {"h", 3600e9}, {"m", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}},
		per:   1e9, largest: 2562047 * 3600, most: "2562047h", sums: true, spelling: strings.NewReplacer("µs", "us"),
	}
	shareQuantity = &quantity{
		kind:  "Fraction",
		units: []unitSize{{"", 100}, {"%", 1}}, spelling: strings.NewReplacer(),
		per: 100, largest: 1, most: "100%, written like 5% or 0.05",
	}
	opsQuantity = &quantity{
		kind:  "OpRate",
		units: []unitSize{{"/s", 3600}, {"/m", 60}, {"/h", 1}}, spelling: strings.NewReplacer(),
		per: 3600, largest: 1e9, most: "1000000000/s", positive: true,
	}
)

// numberRE finds numbers, each followed by its unit.
var numberRE = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([^0-9]*)`)

// read returns the value of s in the base unit.
func (q *quantity) read(s string) (*big.Rat, error) {
	parts, total := numberRE.FindAllStringSubmatch(s, -1), new(big.Rat)
	// The length limit protects big.Rat from numbers of absurd precision.
	if len(s) > 60 || parts == nil || !strings.HasPrefix(s, parts[0][0]) {
		return nil, notA(q.kind, s, "")
	}
	for _, part := range parts {
		number, unit := part[1], q.spelling.Replace(part[2])
		i := slices.IndexFunc(q.units, func(u unitSize) bool { return u.name == unit })
		switch {
		case q.sums && s == "0":
		case i < 0 || len(parts) > 1 && !q.sums:
			return nil, notA(q.kind, s, q.hint(number, unit))
		default:
			n, _ := new(big.Rat).SetString(number)
			total.Add(total, n.Mul(n, big.NewRat(q.units[i].size, q.per)))
		}
	}
	switch {
	case total.Cmp(big.NewRat(q.largest, 1)) > 0:
		return nil, mistake("at most "+q.most, "%q is too large", s)
	case q.positive && total.Sign() == 0:
		return nil, mistake("", "%q is not above 0", s)
	}
	return total, nil
}

// parseWhole sets *to to the value of s, which must be an integer number of the smallest unit.
func parseWhole[T ~int64](q *quantity, s, smallest string, to *T) error {
	v, err := q.read(s)
	if err != nil {
		return err
	}
	if v.Mul(v, big.NewRat(q.per, 1)); !v.IsInt() {
		return mistake("", "%q is not a whole number of %s", s, smallest)
	}
	*to = T(v.Num().Int64())
	return nil
}

// parseReal sets *to to the value of s in the base unit.
func parseReal[T ~float64](q *quantity, s string, to *T) error {
	v, err := q.read(s)
	if err == nil {
		f, _ := v.Float64()
		*to = T(f)
	}
	return err
}

// hint names the probable units of a number with an unknown unit: those that it abbreviates or, for
// durations, that it begins with; otherwise all units.
func (q *quantity) hint(number, unit string) string {
	if q == rateQuantity && strings.Contains(unit, "B") {
		return "rates are in bits per second: 8Mbit for 1MB/s"
	}
	lower := strings.ToLower(strings.TrimSpace(unit))
	var near, all []string
	for _, u := range q.units {
		name := strings.ToLower(u.name)
		if name == "" {
			continue
		}
		all = append(all, u.name)
		if lower != "" && (strings.HasPrefix(name, lower) || q.sums && strings.HasPrefix(lower, name)) {
			near = append(near, "`"+number+u.name+"`")
		}
	}
	if near != nil {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "units are " + strings.Join(all, ", ")
}

// Bytes is a size in bytes. It is written with a unit that is either binary (KiB, MiB: powers of
// 1024) or decimal (kB, MB: powers of 1000).
type Bytes int64

// ParseBytes reads a size such as 10MiB, 10MB, 512B or 512. It refuses a unit that could be binary
// or decimal (10M).
func ParseBytes(s string) (Bytes, error) {
	var b Bytes
	err := b.parse(s)
	return b, err
}

func (b *Bytes) parse(s string) error { return parseWhole(bytesQuantity, s, "bytes", b) }

// String returns the shortest exact text for b, binary if a decimal one is as long. Its unit is
// always unambiguous.
func (b Bytes) String() string {
	digits, unit := strconv.FormatInt(int64(b), 10), "B"
	for _, u := range slices.Concat(binaryUnits, decimalUnits) {
		if n := strconv.FormatInt(int64(b)/u.size, 10); int64(b)%u.size == 0 && len(n) < len(digits) {
			digits, unit = n, u.name
		}
	}
	return digits + unit
}

// BitRate is a rate in bits per second; 0 is unlimited. Its units are decimal.
type BitRate float64

func (r *BitRate) parse(s string) error { return parseReal(rateQuantity, s, r) }

// String returns the rate in the largest unit in which it is at least 1.
func (r BitRate) String() string {
	if r == 0 {
		return "unlimited"
	}
	for _, u := range rateQuantity.units {
		text := strconv.FormatFloat(float64(r)/float64(u.size), 'f', -1, 64) + u.name
		var back BitRate
		// Division may round; then a smaller unit is exact.
		if float64(r) >= float64(u.size) && back.parse(text) == nil && back == r {
			return text
		}
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64) + "bit"
}

// Duration is a length of time. In JSON it is a number of seconds.
type Duration time.Duration

// Std converts d to the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

func (d *Duration) parse(s string) error { return parseWhole(durationQuantity, s, "nanoseconds", d) }

// zeroParts matches what the standard library appends to the minutes of 1m0s and the hours of
// 1h0m0s.
var zeroParts = regexp.MustCompile(`(m|h)(0m)?0s$`)

// String formats d like the standard library, without parts that are zero: "1m", not "1m0s".
func (d Duration) String() string {
	s := strings.Replace(time.Duration(d).String(), "µs", "us", 1)
	return zeroParts.ReplaceAllString(s, "$1")
}

// MarshalJSON returns exact decimal seconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return []byte(words.Decimal(big.NewRat(int64(d), int64(time.Second)), 9)), nil
}

// UnmarshalJSON reads seconds, exactly to the nanosecond.
func (d *Duration) UnmarshalJSON(b []byte) error { return d.parse(string(b) + "s") }

// Fraction is a share between 0 and 1.
type Fraction float64

func (f *Fraction) parse(s string) error { return parseReal(shareQuantity, s, f) }

// String returns the percentage with as few digits as represent f exactly, or else the plain
// number.
func (f Fraction) String() string {
	for digits := range 17 {
		var back Fraction
		text := strconv.FormatFloat(100*float64(f), 'g', digits+1, 64) + "%"
		if back.parse(text) == nil && back == f {
			return text
		}
	}
	return strconv.FormatFloat(float64(f), 'f', -1, 64)
}

// Of returns the share of n, rounded up to an integer: 10 % of 30 is 3, whatever the binary
// fraction of 0.1 is.
func (f Fraction) Of(n int) int {
	if f <= 0 {
		return 0
	}
	return min(n, max(1, int(math.Ceil(float64(n)*float64(f)-1e-9))))
}

// OpRate is a rate of operations per second.
type OpRate float64

func (r *OpRate) parse(s string) error { return parseReal(opsQuantity, s, r) }

// String returns the rate per second.
func (r OpRate) String() string { return strconv.FormatFloat(float64(r), 'f', -1, 64) + "/s" }

// Money is an exact amount in a system's currency, without its unit.
type Money string

var moneyRE = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

func (m *Money) parse(s string) error {
	s = strings.TrimSpace(s)
	if !moneyRE.MatchString(s) || len(s) > 60 {
		return notA("Money", s, "all its digits, without separators, exponent and currency")
	}
	amount, _ := new(big.Rat).SetString(s)
	*m = Money(words.Decimal(amount, len(s)))
	return nil
}

// PriceText is a [Price] as written in the file.
type PriceText string

func (t *PriceText) parse(s string) error {
	_, err := ParsePrice(s)
	*t = PriceText(strings.Join(strings.Fields(s), " "))
	return err
}

// Price is the price of one unit of a system's currency.
type Price struct {
	Each     *big.Rat // in Currency
	Currency string   // "USD"
}

var priceRE = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?)\s+([A-Za-z]+)(?:\s+.*)?$`)

// ParsePrice reads a price such as "0.014 USD (2018-06-01)".
func ParsePrice(s string) (Price, error) {
	m := priceRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || len(m[1]) > 60 {
		return Price{}, notA("PriceText", s, "write the amount, the currency and where it is from")
	}
	each, _ := new(big.Rat).SetString(m[1])
	return Price{each, m[3]}, nil
}
