package httpload

import (
	"bytes"
	"errors"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxHead is the largest accepted head of an answer, in bytes.
const maxHead = 64 << 10

// head is the relevant part of the head of an answer.
type head struct {
	status       int
	length       int64 // Content-Length; -1: none
	chunked      bool
	close        bool   // the connection ends with this answer
	contentRange string // empty: none
	encoding     string
}

// Errors of heads are error classes.
var (
	errMalformedHead = errors.New("malformed head")
	errHeadTooLarge  = errors.New("head too large")
)

// headEnd returns the length of the head at the start of b, including the empty line,
// or 0 if it is not complete. Bytes before from have already been searched.
func headEnd(b []byte, from int) int {
	const end = "\r\n\r\n"
	from = max(from-len(end)+1, 0) // the end may begin before from
	if i := bytes.Index(b[from:], []byte(end)); i >= 0 {
		return from + i + len(end)
	}
	return 0
}

// parseHead parses a complete head, as headEnd delimits it (RFC 9112).
func parseHead(b []byte) (head, error) {
	h := head{length: -1}
	line, rest, _ := strings.Cut(string(b), "\r\n")
	ok := h.statusLine(line)
	for ok {
		if line, rest, _ = strings.Cut(rest, "\r\n"); line == "" {
			break
		}
		name, value, colon := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		ok = colon && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) &&
			h.field(name, value)
	}
	if !ok {
		return h, errMalformedHead
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
func (h *head) statusLine(line string) (ok bool) {
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	n, ok := number(code)
	h.status, h.close = int(n), proto == "HTTP/1.0"
	return ok && len(code) == 3 && n >= 100 && (h.close || proto == "HTTP/1.1")
}

func (h *head) field(name, value string) (ok bool) {
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
		h.contentRange += value // two of them make an invalid one
	case "Content-Length":
		n, ok := number(value)
		if !ok || h.length >= 0 && h.length != n {
			return false
		}
		h.length = n
	case "Content-Encoding":
		h.encoding = encodingName(value)
	case "Transfer-Encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return false
		}
		h.chunked = true
	}
	return true
}

// encodingName limits the number of error classes that a server can cause; empty: no encoding.
func encodingName(v string) string {
	switch v = strings.ToLower(v); v {
	case "", "identity", "aws-chunked": // the last is of the upload; some S3 servers keep it
		return ""
	case "gzip", "deflate", "br", "zstd", "compress":
		return v
	}
	return "other"
}

// number parses a number of only decimal digits.
func number(s string) (n int64, ok bool) {
	u, err := strconv.ParseUint(s, 10, 63)
	return int64(u), err == nil
}
