package testbed

import (
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

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
