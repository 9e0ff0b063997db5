package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/facts"
)

// A terminal gets colours, not their escapes as text.
func TestReportOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	defer screen.Close()
	check(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	check(t, err)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	defer terminal.Close()
	check(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))

	dir := facts.Unpack(t, "retrieve-gates")
	go func() {
		run([]string{"report", dir}, strings.NewReader(""), terminal, terminal)
		fmt.Fprintln(terminal, "the end")
	}()
	var got strings.Builder
	for b := make([]byte, 4096); !strings.Contains(got.String(), "the end"); {
		n, err := screen.Read(b)
		check(t, err)
		got.Write(b[:n])
	}
	text := got.String()
	if !strings.Contains(text, "\x1b[31m") || strings.Contains(text, "?[31m") {
		t.Errorf("no colours, or broken ones:\n%q", text)
	}
}
