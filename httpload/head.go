package httpload

import (
	"bytes"
	"errors"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
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
	line, rest := cutLine(string(b))
	if !h.statusLine(line) {
		return h, errMalformedHead
	}
	relevant := true // no field to continue before the first
	for {
		if line, rest = cutLine(rest); line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if relevant {
				return h, errMalformedHead
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return h, errMalformedHead
		}
		var err error
		if relevant, err = h.field(name, value); err != nil {
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

// statusLine parses "HTTP/1.1 200 OK".
func (h *head) statusLine(line string) bool {
	minor, status, ok := strings.Cut(strings.TrimPrefix(line, "HTTP/1."), " ")
	if !ok || len(line) < 12 || line[:7] != "HTTP/1." || len(minor) != 1 || len(status) > 3 && status[3] != ' ' {
		return false
	}
	n, ok := number(status[:3])
	_, digit := number(minor)
	h.status, h.close = int(n), minor == "0"
	return ok && digit && n >= 100
}

func (h *head) field(name, value string) (relevant bool, err error) {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Connection":
		for v := range strings.SplitSeq(value, ",") {
			switch strings.ToLower(strings.Trim(v, " \t")) {
			case "close":
				h.close = true
			case "keep-alive":
				h.close = false
			}
		}
	case "Content-Range":
		if h.ranged {
			return true, errContentRange
		}
		h.ranged = true
		return true, h.contentRange(value)
	case "Content-Length":
		for v := range strings.SplitSeq(value, ",") {
			n, ok := number(strings.Trim(v, " \t"))
			if !ok || (h.length >= 0 && h.length != n) {
				return true, errContentLength
			}
			h.length = n
		}
	case "Content-Encoding":
		h.encoding = encodingName(value)
	case "Transfer-Encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return true, errTransferEncoding
		}
		h.chunked = true
	default:
		return false, nil
	}
	return true, nil
}

// contentRange parses "bytes 0-99/1000"; the complete length may be "*". The
// form of a 416, "bytes */1000", leaves first and last at -1.
func (h *head) contentRange(v string) error {
	unit, v, _ := strings.Cut(v, " ")
	span, total, found := strings.Cut(strings.TrimLeft(v, " "), "/")
	if !found || !strings.EqualFold(unit, "bytes") {
		return errContentRange
	}
	ok := true
	if total != "*" {
		if h.total, ok = number(total); !ok {
			return errContentRange
		}
	}
	if span == "*" {
		h.first, h.last = -1, -1
		return nil
	}
	first, last, _ := strings.Cut(span, "-")
	if h.first, ok = number(first); !ok {
		return errContentRange
	}
	if h.last, ok = number(last); !ok || h.last < h.first || (h.total >= 0 && h.last >= h.total) {
		return errContentRange
	}
	return nil
}

// encodingName keeps a server from making up classes without number; empty: none.
func encodingName(v string) string {
	switch v = strings.ToLower(v); v {
	case "", "identity":
		return ""
	case "gzip", "deflate", "br", "zstd", "compress":
		return v
	}
	return "other"
}

func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// number parses decimal digits and nothing else.
func number(s string) (n int64, ok bool) {
	u, err := strconv.ParseUint(s, 10, 63)
	return int64(u), err == nil
}
