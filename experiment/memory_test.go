package experiment

import (
	"runtime"
	"strings"
	"testing"
)

// A file of the largest size takes little memory, whatever is in it.
func TestReadingTakesLittleMemory(t *testing.T) {
	for _, piece := range []string{
		"- ", "[]", "[[]]", "{}", "? ", "a: ", "&a ", "*a ", "!a ", "<<: ", "- [", "[1,", "{a: ", "a:\n", "- a\n",
		"- \n", "'' ", "\"a\" ", ": ", "---\n", "|\n", "#\n", "[a]: ", "- - a\n",
	} {
		text := []byte(strings.Repeat(piece, maxSource/len(piece)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("f.yaml", text, nil, testCatalog())
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%q: accepted", piece)
		}
		// All that was ever allocated is a bound of what was held.
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 {
			t.Errorf("%q: %d MiB", piece, took)
		}
	}
}
