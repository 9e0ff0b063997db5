// Package ui implements the conventions of the terminal interface: standard output and standard
// error, the form of errors and hints, and a progress line that is redrawn on a terminal and
// becomes plain lines elsewhere.
package ui

// Rules of the interface:
//
//   - Results go to standard output, everything else to standard error.
//   - An error states what failed, on what, and what to do; the hint is on a separate line. No
//     stack traces, no capital letter, no full stop.
//   - Progress is one line, redrawn at most five times a second, and only on a terminal. Elsewhere
//     each finished step is one plain line.
//   - Text that others may have written (a title, a server's error) cannot control the terminal.
//   - With --json every message is one JSON object per line on standard output.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// UI writes to a terminal or its replacement.
type UI struct {
	Out, Err io.Writer
	JSON     bool // one JSON object per line on Out instead of prose

	mu       sync.Mutex
	width    int // columns of the terminal on Err, for progress; 0: it is none
	results  int // columns of the terminal on Out; 0: it is none
	line     string
	lastDraw time.Time
}

// New returns the interface to the given streams. err is a terminal if it is an *os.File that
// refers to one.
func New(out, err io.Writer) *UI {
	return &UI{Out: out, Err: err, width: columns(err), results: columns(out)}
}

// widest is the number of columns assumed if a terminal does not report it.
const widest = 100

// columns returns the width of the terminal that w writes to; 0: w is no terminal.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 20 {
		return n
	}
	return widest
}

// Width returns the number of columns available for results. It is 0 if they do not go to a
// terminal: then nothing needs to be omitted to save space.
func (u *UI) Width() int { return u.results }

// Terminal reports whether progress is drawn.
func (u *UI) Terminal() bool { return u.width > 0 }

// Say writes one plain line to standard error.
func (u *UI) Say(format string, args ...any) {
	if u.JSON {
		u.Emit(map[string]any{"type": "message", "text": fmt.Sprintf(format, args...)})
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.clear()
	io.WriteString(u.Err, u.wrapped(Clean(fmt.Sprintf(format, args...)))+"\n")
	u.draw()
}

// Error writes an error and its hint, if it has one.
func (u *UI) Error(err error) {
	msg, hint := err.Error(), Hint(err)
	if u.JSON {
		u.Emit(map[string]any{"type": "error", "text": msg, "hint": hint})
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.clear()
	fmt.Fprintln(u.Err, u.wrapped("plimsoll: "+Clean(strings.TrimPrefix(msg, "plimsoll: "))))
	if hint != "" {
		fmt.Fprintln(u.Err, u.wrapped("hint: "+Clean(hint)))
	}
}

// wrapped breaks long lines at spaces for a terminal. Lines with a command or an address stay
// unbroken, so that they can be copied.
func (u *UI) wrapped(text string) string {
	if u.width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if utf8.RuneCountInString(line) < u.width || strings.Contains(line, "plimsoll ") ||
			strings.Contains(line, " --") || strings.Contains(line, "://") || strings.HasPrefix(line, " ") {
			continue
		}
		lines[i] = strings.Join(words.Wrap("", "  ", line, u.width-1), "\n")
	}
	return strings.Join(lines, "\n")
}

// Emit writes one JSON object as a line to standard output.
func (u *UI) Emit(v any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = json.NewEncoder(u.Out).Encode(v)
}

// Progress redraws the progress line; an empty text removes it.
func (u *UI) Progress(text string) {
	if u.width == 0 || u.JSON {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if text != "" && time.Since(u.lastDraw) < 200*time.Millisecond {
		return
	}
	u.clear()
	u.line = text
	u.draw()
}

func (u *UI) clear() {
	if u.line != "" {
		io.WriteString(u.Err, "\r\x1b[K")
	}
}

func (u *UI) draw() {
	if u.line == "" {
		return
	}
	u.lastDraw = time.Now()
	r := []rune(Clean(u.line))
	if len(r) > u.width-1 {
		r = append(r[:u.width-2], '…')
	}
	io.WriteString(u.Err, string(r))
}

// Plain returns a writer to w that replaces terminal commands: control characters other than line
// feeds and tabs become question marks. Titles, names and errors in other people's runs or in
// servers' answers may contain anything.
func Plain(w io.Writer) io.Writer { return transform.NewWriter(w, runes.Map(printable)) }

// Clean returns a text as Plain writes it.
func Clean(s string) string { return strings.Map(printable, s) }

func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return '?'
	}
	return r
}

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

// WithHint adds to an error a hint about what the user can do.
func WithHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	return &hinted{err, hint}
}

type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }
func (h *hinted) Hint() string  { return h.hint }

// Hint returns the first hint in an error's chain, or "".
func Hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
