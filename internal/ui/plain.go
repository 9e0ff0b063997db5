package ui

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Plain returns a writer to w that replaces terminal commands: control characters other than line
// feeds and tabs become question marks. Titles, names and errors in other people's runs or in
// servers' answers may contain anything.
func Plain(w io.Writer) io.Writer { return transform.NewWriter(w, runes.Map(printable)) }

// Clean returns a text as Plain writes it.
func Clean(s string) string { return strings.Map(printable, s) }

func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return '?'
	}
	return r
}
