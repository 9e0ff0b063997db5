package workload

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func readTrace(text string) (*Trace, error) {
	return ReadTrace(strings.NewReader(text), "t.csv", func(s string) (int64,
		error) {
		return strconv.ParseInt(s, 10, 64)
	})
}

func TestTrace(t *testing.T) {
	trace, err := readTrace("# sizes\r\n5, a/b, c.txt\r\n\r\n 0\n7,z\n")
	must(t, err)
	s := NewSynthetic(trace, trace.Name, 1, 1)
	var got []string
	for i := range s.Len() {
		o := s.Object(i)
		got = append(got, fmt.Sprintf("%s %d", o.Name, o.Size))
		if n := len(contentOf(t, s, i)); int64(n) != o.Size {
			t.Errorf("%s: %d bytes", o.Name, n)
		}
	}
	if want := "a/b, c.txt 5; 00000001.bin 0; z 7"; strings.Join(got, "; ") != want {
		t.Errorf("objects %v, want %s", got, want)
	}
	plain, err := readTrace("5\n6\n")
	if err != nil || plain.Name(1) != "00000001.bin" {
		t.Errorf("%v, %v", plain, err)
	}
	// Even a change of one size changes the fingerprint.
	f := func(text string) string {
		trace, err := readTrace(text)
		must(t, err)
		return NewSynthetic(trace, trace.Name, 0, 1).Fingerprint()
	}
	if a, b, c := f("5\n6\n"), f("5\n7\n"), f("5\n6,x\n"); a == b || a == c || a != f("# again\n5\n6\n") {
		t.Errorf("fingerprints %s, %s, %s", a, b, c)
	}
}

func TestBadTraces(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "no line has a size",
		"# nothing\n":              "no line has a size",
		"5\nfive\n":                "t.csv:2: ",
		"5\n-1\n":                  "t.csv:2: a size cannot be negative",
		"5,../x\n":                 "t.csv:1: the name \"../x\" is not a plain path",
		"5,/x\n":                   "t.csv:1: ",
		"5,a//b\n":                 "t.csv:1: ",
		"5,a/\n":                   "t.csv:1: ",
		"5,\xff\n":                 "t.csv:1: the name \"\\xff\" is not valid UTF-8",
		"5,a\n# x\n6,b\n7,a\n":     "t.csv:4: the name \"a\" is the one of line 1, too",
		"5\n6,00000000.bin\n":      "t.csv:2: the name \"00000000.bin\" is the one of line 1, too",
		"?\n?\n":                   "t.csv:1: ",
		strings.Repeat("1", 2<<20): "t.csv:1: ",
	} {
		if _, err := readTrace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}
