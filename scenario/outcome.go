package scenario

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Reasons for cutting off an operation, as causes of its context's end.
var (
	ErrStalled  = errors.New("no byte came for the stall limit")
	ErrDeadline = errors.New("the operation's deadline passed")
)

// contractErrors maps the errors of package system to classes. An error that wraps several of
// them has the class of the first.
var contractErrors = []struct {
	err   error
	class string
}{
	{system.ErrBadRef, "malformed reference"},
	{system.ErrNotFound, "not found"},
	{system.ErrAuth, "wrong credentials"},
	{system.ErrLocked, "locked"},
	{system.ErrQuota, "quota or disk full"},
	{system.ErrTooFew, "too few servers"},
	{system.ErrReadOnly, "read only"},
	{system.ErrNoRange, "no ranges"},
	{system.ErrWarm, "not cold"},
}

// statusRE finds the status in the text of a system's error: "status 503".
var statusRE = regexp.MustCompile(`\bstatus (\d{3})\b`)

// OutcomeOf derives the outcome of an operation from its error and the cause of its context's
// end (nil if the context had not ended). class is empty if the outcome needs none, such as OK;
// status is 0 if the error names none.
func OutcomeOf(err, cause error) (outcome record.Outcome, class string, status uint16) {
	switch {
	case err == nil:
		return record.OK, "", 0
	// the experiment's limit, or the system's own
	case errors.Is(cause, ErrStalled), cause == nil && errors.Is(err, system.ErrStalled):
		return record.Stalled, "", 0
	case errors.Is(cause, ErrDeadline):
		return record.Deadline, "", 0
	case cause != nil:
		return record.Cancelled, "", 0
	}
	if m := statusRE.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		status = uint16(n)
	}
	for _, c := range contractErrors {
		if errors.Is(err, c.err) {
			return record.Error, c.class, status
		}
	}
	var timeout net.Error
	named := "status " + strconv.Itoa(int(status))
	switch {
	case status == 429 || status == 503:
		return record.Refused, named, status
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.Refused, "connection refused", status
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Truncated, "", status
	case status != 0:
		return record.Error, named, status
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return record.Error, "connection reset", 0
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return record.Error, "timeout of the system's own", 0
	}
	return record.Error, shortClass(err), 0
}

// ClassLength limits the text of a class that is derived from an error's text.
const ClassLength = 60

// digitsRE matches the parts that differ between errors of the same class: numbers, and the
// hexadecimal and base-32 names of objects.
var digitsRE = regexp.MustCompile(`[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*`)

// shortClass returns the innermost error's text without names of objects, so that the same
// failure of many objects is one class.
func shortClass(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return words.Clip(strings.Join(strings.Fields(digitsRE.ReplaceAllString(err.Error(), "#")), " "), ClassLength)
}

// errorLength limits the text of an error that is kept for each object.
const errorLength = 300

// ShortError returns the text of an error, clipped because it is kept for each object.
func ShortError(err error) string { return words.Clip(err.Error(), errorLength) }
