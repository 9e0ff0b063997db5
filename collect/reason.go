package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/system"
)

// mostReason limits the length of a recorded failure, in characters: a year of failed polls has half a
// million of them.
const mostReason = 300

// Reason describes briefly why a call that took this long failed: its class, a colon, and the
// system's message.
func Reason(err error, took time.Duration) string {
	class := classOf(err)
	if class == "timeout" {
		return fmt.Sprintf("timeout: no answer within %s", words.Duration(took))
	}
	return class + ": " + words.Clip(strings.Join(strings.Fields(err.Error()), " "), mostReason)
}

// Class returns the first part of a [Reason]. There are few classes: "timeout", "connection
// refused", "connection reset", "unreachable", "malformed answer", "cut off", "status
// 500", "failed".
func Class(reason string) string {
	class, _, _ := strings.Cut(reason, ": ")
	return class
}

func classOf(err error) string {
	var status interface{ StatusCode() int }
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.StatusCode())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "cut off"
	case errors.Is(err, system.ErrAnswer), errors.As(err, &syntax), errors.As(err, &kind):
		return "malformed answer"
	case errors.As(err, &network):
		return "unreachable"
	}
	return "failed"
}
