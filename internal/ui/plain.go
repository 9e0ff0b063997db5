package ui

import (
	"io"
	"strings"
)

// Plain returns a writer to w that replaces terminal commands: control characters other than line
// feeds and tabs become question marks. Titles, names and errors in other people's runs or in
// servers' answers may contain anything.
func Plain(w io.Writer) io.Writer { return &plain{w: w} }

type plain struct {
	w    io.Writer
	half bool // the last write ended inside a possible character of the second control set
	buf  []byte
}

// lead is the first UTF-8 byte of the characters U+0080 to U+00BF. Those up to U+009F are control
// characters, too: U+009B is Escape and a bracket in one.
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

// Clean returns a text as Plain writes it.
func Clean(s string) string {
	var b strings.Builder
	Plain(&b).Write([]byte(s))
	return b.String()
}
