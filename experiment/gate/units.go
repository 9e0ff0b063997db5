package gate

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// unitsOf are the units in which a value of a metric may be given, with their
// factors to the metric's own. "" is a bare number, in the metric's own.
func unitsOf(unit string) map[string]float64 {
	switch unit {
	case "s":
		return map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
	case "ratio":
		return map[string]float64{"": 1, "%": 0.01}
	case "×":
		return map[string]float64{"": 1, "x": 1, "×": 1}
	case "1":
		return map[string]float64{"": 1}
	case "B", "B/s", "bit/s", "1/s":
		suffix := strings.TrimPrefix(unit, "1")
		all := map[string]float64{suffix: 1}
		for i, prefix := range []string{"k", "M", "G", "T"} {
			all[prefix+suffix] = math.Pow(1000, float64(i+1))
			if unit != "1/s" {
				all[strings.ToUpper(prefix)+"i"+suffix] = math.Pow(1024, float64(i+1))
			}
		}
		return all
	}
	return map[string]float64{"": 1, unit: 1}
}

func unitsHint(unit string) string {
	return "units: " + strings.TrimPrefix(strings.Join(slices.Sorted(maps.Keys(unitsOf(unit))), ", "), ", ")
}

func unitWord(unit string) string {
	switch unit {
	case "ratio":
		return "a share"
	case "1":
		return "a count"
	}
	return unit
}
