package experiment

import (
	"runtime"
	"strings"
	"testing"
)

// Reading a file of the maximum size takes little memory, whatever its content.
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
		// The total allocated is an upper bound of the memory in use.
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 {
			t.Errorf("%q: %d MiB", piece, took)
		}
	}
}
