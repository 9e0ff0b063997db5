package httpload

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

var errChunk = errors.New(classChunk)

// chunkedBody decodes a chunked body (RFC 9112 §7.1) piece by piece.
type chunkedBody struct {
	state    uint8
	left     int64  // bytes left of the chunk's data
	line     []byte // received part of a framing line
	trailers int    // bytes of trailers
}

const (
	chunkSize = iota // at the start of a line with a size
	chunkData
	chunkDataEnd // the line end after the data
	chunkTrailer // at the start of a trailer line
	chunkDone
)

// next decodes a part of b: data is the payload in it (nil: only framing), rest is
// what is left of b. At the end of the body done is true and rest is what follows it.
func (c *chunkedBody) next(b []byte) (data, rest []byte, done bool, err error) {
	for len(b) > 0 && c.state != chunkDone {
		if c.state == chunkData {
			n := min(c.left, int64(len(b)))
			if c.left -= n; c.left == 0 {
				c.state = chunkDataEnd
			}
			return b[:n], b[n:], false, nil
		}
		part, after, whole := bytes.Cut(b, []byte{'\n'})
		c.line, b = append(c.line, part...), after
		if len(c.line)+c.trailers > maxHead {
			return nil, nil, false, errChunk
		}
		if !whole {
			break
		}
		if err := c.framing(strings.TrimSuffix(string(c.line), "\r")); err != nil {
			return nil, nil, false, err
		}
		c.line = c.line[:0]
	}
	return nil, b, c.state == chunkDone, nil
}

// framing handles a line of framing.
func (c *chunkedBody) framing(line string) error {
	switch {
	case c.state == chunkSize:
		size, _, _ := strings.Cut(line, ";") // an extension follows
		n, err := strconv.ParseUint(strings.TrimRight(size, " \t"), 16, 63)
		if err != nil {
			return errChunk
		}
		c.state, c.left = chunkData, int64(n)
		if n == 0 {
			c.state = chunkTrailer
		}
	case c.state == chunkDataEnd && line == "":
		c.state = chunkSize
	case c.state == chunkDataEnd:
		return errChunk
	case line == "":
		c.state = chunkDone
	default:
		c.trailers += len(line)
	}
	return nil
}
