package httpload

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/plimsoll-project/plimsoll/record"
)

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
		return record.Refused, classRefused
	case syscall.ETIMEDOUT:
		return record.Stalled, record.PhaseConnect
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		return record.Error, classNoRoute
	case syscall.ECONNRESET, syscall.EPIPE:
		return record.Error, classReset
	// The remaining errors are caused by this machine, not by the server.
	case syscall.EADDRNOTAVAIL:
		return record.Cancelled, classNoPort
	case syscall.EMFILE, syscall.ENFILE:
		return record.Cancelled, classNoFiles
	}
	return record.Cancelled, classLocalFailure + errno.Error()
}

// Classes of failures that are decided elsewhere than in judge.
const (
	classRefused      = "connection refused"
	classReset        = "connection reset"
	classEOFBefore    = "closed before the head"
	classEOFHead      = "closed in the head"
	classEOFBody      = "closed in the body"
	classLong         = "body too long"
	classWrong        = "wrong bytes"
	classChunk        = "malformed chunk"
	classShortChunks  = "chunks too short"
	classNotFollowed  = "redirect not followed"
	classNoRoute      = "no route to host"
	classNoPort       = "local: no free port"
	classNoFiles      = "local: too many open files"
	classNoBuffer     = "local: the socket does not take a whole request"
	classLocalFailure = "local: "
)
