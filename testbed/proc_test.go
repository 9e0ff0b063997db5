package testbed

import (
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
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

// TestWatchAForeignServer: a server that the testbed did not start is found by
// its port, gets samples, and what it burns is not charged to others.
func TestWatchAForeignServer(t *testing.T) {
	bed, h := plainHost(t)
	port, err := h.Port(t.Context(), 0)
	must(t, err)
	ctx, address := t.Context(), net.JoinHostPort(h.Addr().String(), strconv.Itoa(port))
	server := exec.Command(self(t), "fake", "listen", address)
	must(t, server.Start())
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	eventually(t, "the server listens", func() bool { return dialer(h, address)(ctx) == nil })
	if ok, err := bed.Watch(ctx, "burner", address); err != nil || !ok {
		t.Fatalf("watch: %v, %v", ok, err)
	}
	epoch := time.Now()
	first := byProcess(bed.Poll(epoch))
	time.Sleep(600 * time.Millisecond)
	last := byProcess(bed.Poll(epoch))
	burnt := last["burner"].CPU - first["burner"].CPU
	others := last[OthersSample].CPU - first[OthersSample].CPU
	if burnt <= 0 || last["burner"].RSS <= 0 || last["burner"].Role != "system" {
		t.Errorf("the burner has sample %+v after %+v", last["burner"], first["burner"])
	}
	total := last[BoxSample].CPU - first[BoxSample].CPU
	if others > total-burnt+0.1 {
		t.Errorf("the machine used %.2f s, the watched server %.2f s of it, and yet others %.2f s", total, burnt,
			others)
	}
	if ok, err := bed.Watch(ctx, "nobody", "127.0.0.1:1"); ok || err != nil {
		t.Errorf("a port without listener: %v, %v", ok, err)
	}
	if _, err := bed.Watch(ctx, "bad", "127.0.0.1"); err == nil {
		t.Error("an address without port is no error")
	}
}

func byProcess(samples []record.Sample) map[string]record.Sample {
	m := map[string]record.Sample{}
	for _, s := range samples {
		m[s.Process] = s
	}
	return m
}
