package httpload

import "errors"

var errChunk = errors.New(classChunk)

// chunkedBody decodes a chunked body (RFC 9112 §7.1) piece by piece.
type chunkedBody struct {
	state  uint8
	digits uint8
	left   int64 // of the chunk's data
	meta   int   // bytes of extensions and trailers, bounded
}

const (
	chunkSize = iota
	chunkExtension
	chunkData
	chunkDataEnd // the line end after the data
	chunkTrailer // at the start of a trailer line
	chunkTrailerLine
	chunkDone
)

// next takes bytes from b: data is the payload at the start of what it took (nil:
// only framing), rest is what is left of b. At the end of the body done is true
// and rest is what came after it.
func (c *chunkedBody) next(b []byte) (data, rest []byte, done bool, err error) {
	for i := 0; i < len(b); {
		ch := b[i]
		switch c.state {
		case chunkSize:
			d, ok := hexDigit(ch)
			switch {
			case ok:
				if c.digits++; c.digits > 15 {
					return nil, nil, false, errChunk
				}
				c.left = c.left<<4 | int64(d)
				i++
			case c.digits == 0:
				return nil, nil, false, errChunk
			case ch == ';' || ch == '\r' || ch == '\n' || ch == ' ' || ch == '\t':
				c.state = chunkExtension
			default:
				return nil, nil, false, errChunk
			}
		case chunkExtension:
			i++
			if c.meta++; c.meta > maxHead {
				return nil, nil, false, errChunk
			}
			if ch == '\n' {
				c.digits = 0
				c.state = chunkData
				if c.left == 0 {
					c.state = chunkTrailer
				}
			}
		case chunkData:
			n := min(c.left, int64(len(b)-i))
			c.left -= n
			if c.left == 0 {
				c.state = chunkDataEnd
			}
			return b[i : i+int(n)], b[i+int(n):], false, nil
		case chunkDataEnd:
			i++
			switch ch {
			case '\r':
			case '\n':
				c.state = chunkSize
			default:
				return nil, nil, false, errChunk
			}
		case chunkTrailer:
			i++
			switch ch {
			case '\r':
			case '\n':
				c.state = chunkDone
				return nil, b[i:], true, nil
			default:
				c.state = chunkTrailerLine
			}
		case chunkTrailerLine:
			i++
			if c.meta++; c.meta > maxHead {
				return nil, nil, false, errChunk
			}
			if ch == '\n' {
				c.state = chunkTrailer
			}
		default:
			return nil, b[i:], true, nil
		}
	}
	return nil, nil, false, nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
