package testbed

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"
)

// The peak is that of the load, not of what came before it, and what was given
// back is in the peak alone.
func TestPeakBeginsAnew(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("the race detector uses memory of its own")
	}
	_, h := plainHost(t)
	const bytes = 64 << 20
	in, feed := io.Pipe()
	said, out := io.Pipe()
	c := fakeCommand(t, "swell", "swell", strconv.Itoa(bytes))
	c.Stdin, c.Stdout = in, out
	p := start(t, h, c)
	swell := func() {
		t.Helper()
		fmt.Fprintln(feed)
		_, err := fmt.Fscanln(said, new(string))
		must(t, err)
	}
	swell()
	m := p.Memory()
	if m.RSS <= 0 || m.RSS > bytes || m.Peak < bytes {
		t.Errorf("after it gave the memory back: %+v", m)
	}
	if err := p.ResetPeak(); err != nil {
		t.Skipf("the kernel resets no peak: %v", err)
	}
	if m := p.Memory(); m.Peak >= bytes {
		t.Errorf("the peak is that of before: %+v", m)
	}
	swell()
	if m := p.Memory(); m.Peak < bytes || m.RSS > bytes {
		t.Errorf("after the second time: %+v", m)
	}
	feed.Close()
	<-p.Done()
	if m := p.Memory(); !math.IsNaN(m.RSS) || !math.IsNaN(m.Peak) {
		t.Errorf("it has ended, yet %+v", m)
	}
}
