package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// The calls and readings of a poll are JSON, so that SQL can look into them; see
// the views of the schema. Each is an array of arrays, whose empty texts at the
// end are left out:
//
//	calls     [name, start since the poll's (ns), duration (ns), error]
//	readings  [name, value (null: not a number), exact, bad]

func appendCalls(b []byte, start time.Duration, calls []PollCall) []byte {
	b = append(b, '[')
	for i, c := range calls {
		b = appendName(b, i, c.Name)
		b = strconv.AppendInt(append(b, ','), int64(c.Start-start), 10)
		b = strconv.AppendInt(append(b, ','), int64(c.End-c.Start), 10)
		b = appendTexts(b, c.Error)
	}
	return append(b, ']')
}

func appendReadings(b []byte, readings []Reading) []byte {
	b = append(b, '[')
	for i, r := range readings {
		b = appendName(b, i, r.Name)
		b = append(b, ',')
		switch {
		case math.IsNaN(r.Value):
			b = append(b, "null"...)
		case math.IsInf(r.Value, 0): // JSON has none; what does not fit is read as one
			b = append(strconv.AppendFloat(b, math.Copysign(9, r.Value), 'g', -1, 64), "e999"...)
		default:
			b = strconv.AppendFloat(b, r.Value, 'g', -1, 64)
		}
		b = appendTexts(b, r.Exact, r.Bad)
	}
	return append(b, ']')
}

func appendName(b []byte, i int, name string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return appendText(append(b, '['), name)
}

// appendTexts ends an array with texts.
func appendTexts(b []byte, texts ...string) []byte {
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	for _, s := range texts {
		b = appendText(append(b, ','), s)
	}
	return append(b, ']')
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string never fails
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func parseCalls(b []byte, start time.Duration, names map[string]string) ([]PollCall, error) {
	var all []PollCall
	p := pollText{rest: b, names: names}
	for p.more() {
		c := PollCall{Name: p.name()}
		c.Start = start + time.Duration(p.integer())
		c.End = c.Start + time.Duration(p.integer())
		c.Error = p.text()
		p.end()
		all = append(all, c)
	}
	return all, p.err
}

func parseReadings(b []byte, names map[string]string) ([]Reading, error) {
	// Every reading but the first follows on "],[".
	all := make([]Reading, 0, 1+bytes.Count(b, []byte("],[")))
	p := pollText{rest: b, names: names}
	for p.more() {
		r := Reading{Name: p.name(), Value: p.float()}
		r.Exact = p.text()
		r.Bad = p.text()
		p.end()
		all = append(all, r)
	}
	return all, p.err
}

// pollText reads what the functions above write. Being made for that alone, it
// takes a tenth of the time that encoding/json does. After its first error it
// stays failed.
type pollText struct {
	rest  []byte
	names map[string]string // those seen: few, and the same in each poll
	begun bool
	err   error
}

// more goes to the next inner array.
func (p *pollText) more() bool {
	if !p.begun {
		p.begun = true
		p.want('[')
	} else if p.is(']') {
		p.want(']')
		if p.err == nil && len(p.rest) > 0 {
			p.fail("text after its end")
		}
		return false
	} else {
		p.want(',')
	}
	if p.is(']') {
		return p.more()
	}
	p.want('[')
	return p.err == nil
}

func (p *pollText) end() { p.want(']') }

func (p *pollText) is(c byte) bool { return p.err == nil && len(p.rest) > 0 && p.rest[0] == c }

func (p *pollText) want(c byte) {
	if !p.is(c) {
		p.fail(fmt.Sprintf("no %q", c))
		return
	}
	p.rest = p.rest[1:]
}

func (p *pollText) fail(why string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: poll: %s at %.20q", ErrCorrupt, why, p.rest)
	}
	p.rest = nil
}

func (p *pollText) name() string {
	b := p.quoted()
	if known, ok := p.names[string(b)]; ok {
		return known
	}
	s := string(b)
	if len(p.names) < maxNames {
		p.names[s] = s
	}
	return s
}

// maxNames bounds the names that a reader of polls knows; others cost memory
// each time.
const maxNames = 10_000

// text is a text at the end of an array, empty when it is left out.
func (p *pollText) text() string {
	if !p.is(',') {
		return ""
	}
	p.want(',')
	return string(p.quoted())
}

func (p *pollText) quoted() []byte {
	p.want('"')
	for i, c := range p.rest {
		switch c {
		case '"':
			b := p.rest[:i]
			p.rest = p.rest[i+1:]
			return b
		case '\\':
			return p.escaped()
		}
	}
	p.fail("no end of a text")
	return nil
}

// escaped is the rest of quoted for a text with escapes: rare.
func (p *pollText) escaped() []byte {
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			var s string
			if err := json.Unmarshal(append(append([]byte{'"'}, p.rest[:i]...), '"'), &s); err != nil {
				p.fail(err.Error())
				return nil
			}
			p.rest = p.rest[i+1:]
			return []byte(s)
		}
	}
	p.fail("no end of a text")
	return nil
}

func (p *pollText) number() []byte {
	p.want(',')
	for i, c := range p.rest {
		if c == ',' || c == ']' {
			b := p.rest[:i]
			p.rest = p.rest[i:]
			return b
		}
	}
	p.fail("no end of a number")
	return nil
}

func (p *pollText) integer() int64 {
	b := p.number()
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil && p.err == nil {
		p.fail(err.Error())
	}
	return n
}

func (p *pollText) float() float64 {
	b := p.number()
	if string(b) == "null" {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil && p.err == nil && !errors.Is(err, strconv.ErrRange) {
		p.fail(err.Error())
	}
	return v
}
