package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// remoteError is an error as it crosses the connection: its text and what callers ask
// errors.Is and errors.As about.
type remoteError struct {
	Text    string
	Errno   syscall.Errno
	Classes []int // into classes
	Memory  *testbed.MemoryError
}

// classes are the errors that errors.Is tests for. Both ends are of one
// version, so their order may change.
var classes = []error{
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, os.ErrProcessDone,
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed, fs.ErrInvalid,
	net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, exec.ErrNotFound, errors.ErrUnsupported,
}

// toRemote is nil for nil.
func toRemote(err error) *remoteError {
	if err == nil {
		return nil
	}
	e := &remoteError{Text: err.Error()}
	errors.As(err, &e.Errno)
	errors.As(err, &e.Memory)
	for i, c := range classes {
		if errors.Is(err, c) {
			e.Classes = append(e.Classes, i)
		}
	}
	return e
}

func (e *remoteError) Error() string { return e.Text }

// Unwrap implements the interface of errors.Is and errors.As.
func (e *remoteError) Unwrap() (all []error) {
	if e.Errno != 0 {
		all = append(all, e.Errno)
	}
	if e.Memory != nil {
		all = append(all, e.Memory)
	}
	for _, i := range e.Classes {
		if i >= 0 && i < len(classes) {
			all = append(all, classes[i])
		}
	}
	return slices.Clip(all)
}
