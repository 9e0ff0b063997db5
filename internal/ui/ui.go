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
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

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
