package httpload

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/http/httpguts"

	"github.com/plimsoll-project/plimsoll/record"
)

// userAgent is the User-Agent of requests.
const userAgent = "plimsoll"

// header returns the header of each request for the object, without Range, and its Host.
func (o *Object) header(u *url.URL) (host string, all http.Header) {
	// Without identity some servers send gzip, which cannot be compared.
	host, all = u.Host, http.Header{"User-Agent": {userAgent}, "Accept-Encoding": {"identity"}}
	for name, v := range o.Header {
		if name = textproto.CanonicalMIMEHeaderKey(name); name != "Host" {
			all[name] = v
		} else if len(v) > 0 {
			host = v[0]
		}
	}
	return host, all
}

// requestLines builds the part of a request after its path, without Range and the empty line.
func (o *Object) requestLines(u *url.URL, fresh bool) []byte {
	host, header := o.header(u)
	if fresh {
		header.Set("Connection", "close")
	}
	b := bytes.NewBufferString(" HTTP/1.1\r\nHost: " + host + "\r\n")
	header.Write(b) // in the order of their names
	return b.Bytes()
}

// reserved are the header fields that the load generator sets itself.
var reserved = []string{"range", "accept-encoding", "connection", "content-length", "transfer-encoding", "te",
	"upgrade"}

// appendSpan appends the span of a range, as in "bytes=0-99".
func appendSpan(b []byte, r *request) []byte {
	b = strconv.AppendInt(b, r.off, 10)
	b = append(b, '-')
	return strconv.AppendInt(b, r.off+r.length-1, 10)
}

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

// judge decides from the head whether an answer can be correct. length is the expected
// number of body bytes, or -1 if it is unknown until the end of the body.
func judge(h *head, r *request, size int64) (o record.Outcome, class string, length int64) {
	fail := func(o record.Outcome, class string) (record.Outcome, string, int64) { return o, class, -1 }
	want := 206
	if r.whole {
		want = 200
	}
	switch {
	case h.status == 429 || h.status == 503:
		return fail(record.Refused, statusClass(h.status))
	case h.status == want:
	case h.status == 200:
		return fail(record.Error, "status 200 to a range")
	case h.status == 206:
		return fail(record.Error, "status 206 to a whole object")
	default:
		return fail(record.Error, statusClass(h.status))
	}
	switch {
	case h.encoding != "":
		return fail(record.Error, "content-encoding "+h.encoding)
	case !r.whole && wrongRange(h.contentRange, r, size) != "":
		return fail(record.Error, wrongRange(h.contentRange, r, size))
	case r.length < 0:
		return record.OK, "", h.length
	case h.length < 0 || h.length == r.length:
		return record.OK, "", r.length
	case h.length < r.length:
		return fail(record.Truncated, "content-length too short")
	default:
		return fail(record.Error, "content-length too long")
	}
}

// wrongRange says what is wrong with the range of an answer; empty: nothing.
func wrongRange(says string, r *request, size int64) string {
	unit, span, _ := strings.Cut(says, " ")
	span, total, _ := strings.Cut(span, "/")
	switch {
	case says == "":
		return "206 without content-range"
	case !strings.EqualFold(unit, "bytes") || span != string(appendSpan(nil, r)):
		return "wrong content-range"
	case total != "*" && size >= 0 && total != strconv.FormatInt(size, 10):
		return "wrong size in content-range"
	}
	return ""
}

func statusClass(status int) string {
	if 300 <= status && status < 400 {
		return "redirect " + strconv.Itoa(status)
	}
	return "status " + strconv.Itoa(status)
}

// errnoOutcome returns the outcome of an operation whose connection failed in the kernel.
func errnoOutcome(errno syscall.Errno) (record.Outcome, string) {
	switch errno {
	case syscall.ECONNREFUSED:
		return record.Refused, "connection refused"
	case syscall.ETIMEDOUT:
		return record.Stalled, record.PhaseConnect
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return record.Error, "no route to host"
	case syscall.ECONNRESET, syscall.EPIPE:
		return record.Error, classReset
	// The remaining errors are caused by this machine, not by the server.
	case syscall.EADDRNOTAVAIL:
		return record.Cancelled, "local: no free port"
	case syscall.EMFILE, syscall.ENFILE:
		return record.Cancelled, "local: too many open files"
	}
	return record.Cancelled, classLocalFailure + errno.Error()
}

// Classes of failures that are decided in several places.
const (
	classReset        = "connection reset"
	classEOFBefore    = "closed before the head"
	classEOFBody      = "closed in the body"
	classLong         = "body too long"
	classWrong        = "wrong bytes"
	classChunk        = "malformed chunk"
	classNoBuffer     = "local: the socket does not take a whole request"
	classLocalFailure = "local: "
)
