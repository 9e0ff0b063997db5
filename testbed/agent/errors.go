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
)

// remoteError is an error sent over the connection: its text, and what errors.Is should find in it.
type remoteError struct {
	Text    string
	Errno   syscall.Errno // errors.Is also finds the errors of package fs in it
	Classes []int         // indexes into classes
}

// classes are further errors that errors.Is should find. Both ends have the same version,
// so their order may change.
var classes = []error{
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, os.ErrProcessDone, fs.ErrNotExist,
	net.ErrClosed, io.EOF, io.ErrUnexpectedEOF, exec.ErrNotFound, errors.ErrUnsupported,
}

// toRemote has no text if there is no error.
func toRemote(err error) *remoteError {
	if err == nil {
		return &remoteError{}
	}
	e := &remoteError{Text: err.Error()}
	errors.As(err, &e.Errno)
	for i, c := range classes {
		if errors.Is(err, c) {
			e.Classes = append(e.Classes, i)
		}
	}
	return e
}

func (e *remoteError) Error() string { return e.Text }

// Is implements the interface of errors.Is.
func (e *remoteError) Is(target error) bool {
	i := slices.Index(classes, target)
	return slices.Contains(e.Classes, i) || e.Errno != 0 && errors.Is(e.Errno, target)
}
