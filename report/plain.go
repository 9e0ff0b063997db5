package report

import (
	"math"
	"strconv"
)

// FactorPaths are the factors that vary, the system aside.
func (r *Report) FactorPaths() []string {
	var paths []string
	seen := map[string]bool{"system": true}
	for _, c := range r.Cells {
		for _, f := range c.Factors {
			if !seen[f.Path] {
				seen[f.Path] = true
				paths = append(paths, f.Path)
			}
		}
	}
	return paths
}

// Value is a factor's value for machines: the number in its base unit, or the word.
func (c *Cell) Value(path string) string {
	f, ok := c.Factor(path)
	switch {
	case !ok:
		return ""
	case f.Unit != "":
		return Plain(f.Number)
	}
	return f.Value
}

// Plain is a number for machines; empty when it is not known.
func Plain(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
