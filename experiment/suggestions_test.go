package experiment

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	replacement = regexp.MustCompile("^did you mean `[^`]+`(?: or `[^`]+`)*\\?$")
	backticked  = regexp.MustCompile("`([^`]+)`")
	quotedWord  = regexp.MustCompile("\"[^\"]+\"|unknown key `[^`]+`")
)

// For every mistake of testdata/bad: text that a message suggests is accepted at the place that the
// message names.
func TestSuggestionsCanBePasted(t *testing.T) {
	pasted := 0
	for _, path := range files(t, "testdata/bad/*.yaml") {
		src := string(read(t, path))
		_, err := ParseKnowing("x.yaml", []byte(src), nil, testCatalog(), testKnown())
		for _, e := range err.(Errors) {
			m := replacement.FindString(e.Hint)
			wrong := strings.Trim(strings.TrimPrefix(quotedWord.FindString(e.Message), "unknown key "), "\"`")
			lines := strings.Split(src, "\n")
			if e.Line == 0 || m == "" || wrong == "" {
				continue
			}
			r := []rune(lines[e.Line-1])
			after, is := strings.CutPrefix(string(r[e.Column-1:]), wrong)
			if !is {
				continue
			}
			for _, word := range backticked.FindAllStringSubmatch(m, -1) {
				pasted++
				lines[e.Line-1] = string(r[:e.Column-1]) + word[1] + after
				_, again := ParseKnowing("x.yaml", []byte(strings.Join(lines, "\n")), nil, testCatalog(), testKnown())
				left, _ := again.(Errors)
				if slices.ContainsFunc(left, func(l *Error) bool {
					return l.Line == e.Line && l.Column == e.Column && replacement.MatchString(l.Hint)
				}) {
					t.Errorf("%s: %s\nwith %q in its place: %v", filepath.Base(path), e, word[1], again)
				}
			}
		}
	}
	if pasted < 20 {
		t.Errorf("only %d suggestions were found", pasted)
	}
}
