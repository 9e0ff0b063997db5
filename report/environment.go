package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// environment lays the run's metadata flat: a value that is a JSON object
// becomes one pair for each of its leaves, "systems.nginx.version".
func environment(meta map[string]string) []Pair {
	pairs := []Pair{}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		var v map[string]any
		if strings.HasPrefix(meta[key], "{") && json.Unmarshal([]byte(meta[key]), &v) == nil {
			if key == "environment" {
				key = "" // its keys speak for themselves
			}
			pairs = flatten(pairs, key, v)
			continue
		}
		pairs = append(pairs, Pair{key, meta[key]})
	}
	return pairs
}

func flatten(pairs []Pair, path string, v map[string]any) []Pair {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		name := key
		if path != "" {
			name = path + "." + key
		}
		switch x := v[key].(type) {
		case map[string]any:
			pairs = flatten(pairs, name, x)
		case nil:
		default:
			if s := fmt.Sprint(x); s != "" {
				pairs = append(pairs, Pair{name, s})
			}
		}
	}
	return pairs
}
