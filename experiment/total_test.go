package experiment

import (
	"strings"
	"testing"
)

// A data set whose bytes cannot be counted is refused where it is said.
func TestTooMuchData(t *testing.T) {
	const file = "scenario: upload\nsystems: [any]\nupload: {}\n"
	any := Catalog{{Name: "any", Modes: []string{"start"}}}
	for _, set := range [][]string{
		{"data.objects=16384", "data.size=1PiB"},
		{"data.objects=1000000", "data.mix=[{share: 100%, size: 1PiB}]"},
		{"data.objects=1000", "data.spread={from: 900TiB, to: 1PiB}", "data.copies=1000"},
	} {
		if _, err := Parse("", []byte(file), set, any); err == nil ||
			!strings.Contains(err.Error(), "PB is more than a data set can have") {
			t.Errorf("%v: %v", set, err)
		}
	}
}
