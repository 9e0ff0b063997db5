package experiment

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	replacement = regexp.MustCompile("^(?:did you mean (`[^`]+`)\\?|write (`[^`]+`), without the space|add a unit: " +
		"(.*))$")
	backticked = regexp.MustCompile("`([^`]+)`")
)

// What a message says to write in the place that it marks is accepted there: of every
// mistake of testdata/bad, and of some values in the wrong words.
func TestSuggestionsCanBePasted(t *testing.T) {
	pasted := 0
	for _, path := range files(t, "testdata/bad/*.yaml") {
		src := string(read(t, path))
		_, err := ParseKnowing("x.yaml", []byte(src), nil, testCatalog(), testKnown())
		errs, _ := err.(Errors)
		for _, e := range errs {
			if e.Source == "" || e.Line == 0 {
				continue
			}
			if m := replacement.FindStringSubmatch(e.Hint); m != nil {
				for _, word := range backticked.FindAllStringSubmatch(m[0], -1) {
					lines := strings.Split(src, "\n")
					r := []rune(strings.TrimSuffix(lines[e.Line-1], "\r"))
					if e.Column-1+e.Width > len(r) {
						continue // it goes on in the next line
					}
					lines[e.Line-1] = string(r[:e.Column-1]) + word[1] + string(r[e.Column-1+e.Width:])
					pasted++
					_, again := ParseKnowing("x.yaml", []byte(strings.Join(lines, "\n")), nil, testCatalog(),
						testKnown())
					left, _ := again.(Errors)
					if slices.ContainsFunc(left, func(l *Error) bool {
						return l.Line == e.Line && l.Column == e.Column && replacement.MatchString(l.Hint)
					}) {
						t.Errorf("%s: %s\nwith %q in its place: %v", filepath.Base(path), e, word[1], again)
					}
				}
			}
		}
	}
	if pasted < 30 {
		t.Errorf("only %d suggestions were found", pasted)
	}
}

// So it is with what is said of a --set argument.
func TestSuggestionsOfSetsWork(t *testing.T) {
	for _, c := range []struct {
		set, want string
	}{
		{"retrieve.duration=2 seconds", "2s"}, {"retrieve.duration=2seconds", "2s"}, {"retrieve.duration=2 s", "2s"},
		{"retrieve.duration=30 min", "30m"},
		{"link.rate=10 MBit", ""}, {"data.size=10 mib", "10MiB"}, {"link.loss=1", "1%"}, {"link.loss=2", "2%"},
		{"link.loss=1 %", "1%"},
	} {
		key, _, _ := strings.Cut(c.set, "=")
		src := []byte("scenario: retrieve\nsystems: [static]\ndata: {size: 1MiB}\nlink: {delay: 1ms}\nretrieve: " +
			"{concurrency: 1, duration: 1s}\n")
		_, err := Parse("x.yaml", src, []string{c.set}, testCatalog())
		errs, ok := err.(Errors)
		if !ok || len(errs) != 1 {
			t.Errorf("%s is accepted: %v", c.set, err)
			continue
		}
		words := backticked.FindAllStringSubmatch(errs[0].Hint, -1)
		if c.want != "" && (len(words) == 0 || words[0][1] != c.want) {
			t.Errorf("%s: hint %q, want %q", c.set, errs[0].Hint, c.want)
		}
		for _, w := range words {
			if _, err := Parse("x.yaml", src, []string{key + "=" + w[1]}, testCatalog()); err != nil && c.want != "" {
				t.Errorf("%s: its hint %q does not work: %v", c.set, w[1], err)
			}
		}
	}
}
