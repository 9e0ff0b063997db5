package httpload

import (
	"bytes"
	"errors"
)

// maxHead is the largest head (all 1xx answers before it included) that is
// taken from a server.
const maxHead = 64 << 10

// head is what matters of a response's head.
type head struct {
	status   int
	length   int64 // Content-Length; -1: none
	chunked  bool
	close    bool // the connection ends with this answer
	ranged   bool // has a Content-Range
	first    int64
	last     int64
	total    int64 // complete length in Content-Range; -1: "*"
	encoding string
	location string // of a redirect
}

// Errors of parseHead become error classes.
var (
	errMalformedHead     = errors.New("malformed head")
	errContentLength     = errors.New("malformed content-length")
	errContentRange      = errors.New("malformed content-range")
	errTransferEncoding  = errors.New("unsupported transfer-encoding")
	errHeadTooLarge      = errors.New("head too large")
	errTooManyProvisions = errors.New("too many 1xx answers")
)

// headEnd returns the length of the head at the start of b, the empty line
// included, or 0 when it is not complete. Bytes before from have been looked at.
func headEnd(b []byte, from int) int {
	// The end may straddle the place that was looked at last.
	for i := max(from-3, 0); ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return 0
		}
		i += j + 1
		switch {
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
	}
}

// parseHead parses a complete head, as headEnd delimits it (RFC 9112). A lone
// LF ends a line, as §2.2 allows. Folded lines (obs-fold, §5.2) are tolerated
// in fields that do not matter here.
func parseHead(b []byte) (head, error) {
	h := head{length: -1, total: -1}
	line, b := cutLine(b)
	// HTTP/1.1 200 OK
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || !digit(line[7]) || line[8] != ' ' ||
		!digit(line[9]) || !digit(line[10]) || !digit(line[11]) || (len(line) > 12 && line[12] != ' ') || line[9] == '0' {
		return h, errMalformedHead
	}
	h.status = int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
	h.close = line[7] == '0'
	relevant := true // no field to continue before the first
	for {
		line, b = cutLine(b)
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if relevant {
				return h, errMalformedHead
			}
			continue
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || !token(line[:colon]) {
			return h, errMalformedHead
		}
		value := bytes.Trim(line[colon+1:], " \t")
		for _, c := range value {
			if c < ' ' && c != '\t' || c == 0x7f {
				return h, errMalformedHead
			}
		}
		var err error
		if relevant, err = h.field(line[:colon], value); err != nil {
			return h, err
		}
	}
	if h.chunked {
		// RFC 9112 §6.3: Transfer-Encoding overrides Content-Length, and the
		// connection is not to be trusted with another request.
		h.close = h.close || h.length >= 0
		h.length = -1
	}
	return h, nil
}

func (h *head) field(name, value []byte) (relevant bool, err error) {
	// The length of the name keeps most fields away from the comparisons.
	switch len(name) {
	case len("Connection"):
		if equalFold(name, "connection") {
			for v := range bytes.SplitSeq(value, []byte(",")) {
				switch v = bytes.Trim(v, " \t"); {
				case equalFold(v, "close"):
					h.close = true
				case equalFold(v, "keep-alive"):
					h.close = false
				}
			}
			return true, nil
		}
	case len("Location"):
		if h.status/100 == 3 && equalFold(name, "location") {
			h.location = string(value)
			return true, nil
		}
	case len("Content-Range"):
		if equalFold(name, "content-range") {
			if h.ranged {
				return true, errContentRange
			}
			h.ranged = true
			return true, h.contentRange(value)
		}
	case len("Content-Length"):
		if equalFold(name, "content-length") {
			for v := range bytes.SplitSeq(value, []byte(",")) {
				n, ok := number(bytes.Trim(v, " \t"))
				if !ok || (h.length >= 0 && h.length != n) {
					return true, errContentLength
				}
				h.length = n
			}
			return true, nil
		}
	case len("Content-Encoding"):
		if equalFold(name, "content-encoding") {
			if !equalFold(value, "identity") && len(value) > 0 {
				h.encoding = encodingName(value)
			}
			return true, nil
		}
	case len("Transfer-Encoding"):
		if equalFold(name, "transfer-encoding") {
			if h.chunked || !equalFold(value, "chunked") {
				return true, errTransferEncoding
			}
			h.chunked = true
			return true, nil
		}
	}
	return false, nil
}

// contentRange parses "bytes 0-99/1000"; the complete length may be "*". The
// form of a 416, "bytes */1000", leaves first and last at -1.
func (h *head) contentRange(v []byte) error {
	if len(v) < 6 || !equalFold(v[:5], "bytes") || v[5] != ' ' {
		return errContentRange
	}
	span, total, found := bytes.Cut(bytes.TrimLeft(v[6:], " "), []byte("/"))
	if !found {
		return errContentRange
	}
	ok := true
	if string(total) != "*" {
		if h.total, ok = number(total); !ok {
			return errContentRange
		}
	}
	if string(span) == "*" {
		h.first, h.last = -1, -1
		return nil
	}
	first, last, _ := bytes.Cut(span, []byte("-"))
	if h.first, ok = number(first); !ok {
		return errContentRange
	}
	if h.last, ok = number(last); !ok || h.last < h.first || (h.total >= 0 && h.last >= h.total) {
		return errContentRange
	}
	return nil
}

// encodingName keeps a server from making up classes without number.
func encodingName(v []byte) string {
	for _, known := range [...]string{"gzip", "deflate", "br", "zstd", "compress"} {
		if equalFold(v, known) {
			return known
		}
	}
	return "other"
}

func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return b, nil
	}
	line = b[:i]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, b[i+1:]
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// number parses decimal digits and nothing else.
func number(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if !digit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// equalFold compares with a lower-case ASCII word.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// token reports whether b is a token of RFC 9110 §5.6.2.
func token(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', digit(c):
		case c == '-' || c == '_':
		case bytes.IndexByte([]byte("!#$%&'*+.^`|~"), c) >= 0:
		default:
			return false
		}
	}
	return true
}
