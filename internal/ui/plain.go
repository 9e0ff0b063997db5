package ui

import (
	"io"
	"strings"
)

// Plain writes text to w without what would command a terminal: control characters
// other than line feeds and tabs become question marks. Titles, names and errors of
// a run that others made, or that a server answered with, may hold anything.
func Plain(w io.Writer) io.Writer { return &plain{w: w} }

type plain struct {
	w    io.Writer
	half bool // a write ended within what may be a character of the second control set
	buf  []byte
}

// lead begins the characters U+0080 to U+00BF in UTF-8, of which those up to U+009F
// are controls, too: U+009B is Escape and a bracket in one.
const lead = 0xc2

func (p *plain) Write(b []byte) (int, error) {
	p.buf = p.buf[:0]
	for _, c := range b {
		switch {
		case p.half && c >= 0x80 && c <= 0x9f:
			p.buf = append(p.buf, '?')
			p.half = false
			continue
		case p.half:
			p.buf = append(p.buf, lead)
		}
		p.half = c == lead
		switch {
		case p.half:
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			p.buf = append(p.buf, '?')
		default:
			p.buf = append(p.buf, c)
		}
	}
	if _, err := p.w.Write(p.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Clean is a text as Plain writes it.
func Clean(s string) string {
	var b strings.Builder
	Plain(&b).Write([]byte(s))
	return b.String()
}
