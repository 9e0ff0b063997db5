package experiment

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// SizeShare is a part of a mix of sizes.
type SizeShare struct {
	// Share of the objects.
	Share Fraction `json:"share" required:"true" min:"0.0000001%"`
	// Size, if all are equal.
	Size Bytes `json:"size,omitempty" one:"true" min:"1B" max:"1PiB"`
	// Smallest of a log-uniform range.
	From Bytes `json:"from,omitempty" one:"true" needs:"to" min:"1B" max:"1PiB"`
	// Largest.
	To Bytes `json:"to,omitempty" needs:"from" min:"1B" max:"1PiB"`
}

// Range returns the smallest and the largest size; they are equal if all sizes are.
func (m SizeShare) Range() (from, to Bytes) {
	return cmp.Or(m.Size, m.From), cmp.Or(m.Size, m.To)
}

func (m *SizeShare) check() error {
	if from, to := m.Range(); to < from {
		return mistake(fmt.Sprintf("did you mean `from: %s, to: %s`?", to, from), "the range ends before it begins")
	}
	return nil
}

func (m SizeShare) String() string {
	if m.Size > 0 {
		return m.Share.String() + " " + m.Size.String()
	}
	return m.Share.String() + " " + m.From.String() + ".." + m.To.String()
}

// Mix lists shares of the objects with their sizes.
type Mix []SizeShare

func (m Mix) String() string { return strings.ReplaceAll(joined(m), ";", ",") }

func (m *Mix) check() error {
	sum := 0.0
	for _, part := range *m {
		sum += 100 * float64(part.Share)
	}
	// Shares like 33.3% are meant to be thirds.
	if math.Abs(sum-100) > 0.1+1e-9 {
		return mistake("let them add up to 100%", "the shares add up to %.4g%%", sum)
	}
	return nil
}

// MaxTotal is the maximum size of a data set in bytes, copies included: 4 EiB, so that sums of two
// stay within 64 bits.
const MaxTotal = 1 << 62

// logUniformMean returns the mean of log-uniform sizes.
func logUniformMean(from, to Bytes) float64 {
	if from == to {
		return float64(from)
	}
	a, b := float64(from), float64(to)
	return (b - a) / math.Log(b/a)
}

// Key returns a text that is equal for equal data sets.
func (d Data) Key() string { return fmt.Sprintf("%+v", d) }

// Known reports whether the sizes follow from the experiment alone; those of a directory or a trace
// are known once it is read.
func (d Data) Known() bool { return d.Directory == "" && d.Trace == "" }

// Given reports whether there is a data set.
func (d Data) Given() bool { return d.Source() != "" }

// Source returns the key that determines the sizes: "size", "mix", "directory" or "trace"; empty if
// there is none.
func (d Data) Source() string {
	for _, key := range []string{"mix", "directory", "trace", "size"} {
		if !cellField(reflect.ValueOf(d), key).IsZero() {
			return key
		}
	}
	return ""
}

// Total returns the number of objects, copies included, and of their bytes (the mean for mixes);
// 0 if the sizes are not [Data.Known].
func (d Data) Total() (objects, bytes float64) {
	mean := float64(d.Size)
	switch d.Source() {
	case "mix":
		mean = 0
		sum := 0.0
		for _, m := range d.Mix {
			mean += float64(m.Share) * logUniformMean(m.Range())
			sum += float64(m.Share)
		}
		mean /= sum
	case "directory", "trace", "":
		return 0, 0
	}
	objects = float64(d.Objects) * float64(max(1, d.Copies))
	return objects, objects * mean
}
