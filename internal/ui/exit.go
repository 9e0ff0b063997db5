package ui

import (
	"context"
	"errors"
)

// Code is an exit status of the program. The codes are part of the interface: docs/scripting.md.
type Code int

const (
	CodeOK            Code = 0
	CodeInternal      Code = 1   // any error that is not listed below
	CodeUsage         Code = 2   // the command line or the experiment file
	CodePreconditions Code = 3   // something is missing on this machine or at the endpoint
	CodeGate          Code = 4   // a gate failed
	CodeInvalid       Code = 5   // no valid trial, no operation of a system succeeded, or no common cell
	CodeCorruption    Code = 6   // returned bytes differ from the object's
	CodeExit          Code = 7   // an exit condition ended the run early
	CodeLost          Code = 8   // a load test finished without all of its objects
	CodeIncomplete    Code = 9   // some trials could not be executed
	CodeUndecided     Code = 10  // no gate failed, but one is inconclusive
	CodeUnwritable    Code = 11  // the disk is full, or the run directory cannot be written
	CodeInterrupted   Code = 130 // Ctrl-C; the run can be resumed
)

// Exit attaches an exit status to an error.
func Exit(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{err, code}
}

type exitError struct {
	error
	code Code
}

func (e *exitError) Unwrap() error { return e.error }

// ExitCode returns the exit status for an error.
func ExitCode(err error) Code {
	if err == nil {
		return CodeOK
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if errors.Is(err, context.Canceled) {
		return CodeInterrupted
	}
	return CodeInternal
}
