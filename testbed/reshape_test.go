package testbed

import (
	"io"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Links change under a connection that lives on: it loses no byte, the buffers
// grow with the product, and who is apart reaches nobody.
func TestReshape(t *testing.T) {
	emulator := "auto"
	if link.Works(link.Own) == nil {
		emulator = link.Own // which knows pairs
	}
	tb, a, b := needEmulator(t, Options{Emulate: emulator})
	_, addr := startEcho(t, a)
	wantError(t, tb.Reshape(t.Context(), ShapeSpec{}), "not emulated")
	base := ShapeSpec{Changes: true, Congestion: "reno"}
	must(t, tb.Shape(t.Context(), base))
	conn := dial(t, b, addr)
	echoes(t, conn)

	const bytes = 1 << 20
	came := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, conn, bytes)
		came <- err
	}()
	go func() { _, _ = conn.Write(make([]byte, bytes)) }()
	before, _, err := tb.EmulatorStats(t.Context())
	must(t, err)
	for i := range 20 { // while it passes
		rate := []float64{20e6, 40e6}[i%2]
		p := access(rate, 5*time.Millisecond)
		spec := ShapeSpec{Changes: true, Topology: link.Topology{Up: links(p, a, b), Down: links(access(rate, 0), a)}}
		must(t, tb.Reshape(t.Context(), spec))
		if got := tb.Want(a, b); got.Rate != rate || got.RTT != 10*time.Millisecond {
			t.Errorf("wanted of the link: %+v", got)
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, <-came)
	if after, running, err := tb.EmulatorStats(t.Context()); err != nil || running {
		if trouble := after.Since(before).Drops[link.DropMemory]; trouble > 0 || err != nil {
			t.Errorf("drops %+v, %v", trouble, err)
		}
	}

	small := tb.shape.buffers["a"]
	long := access(1e9, 500*time.Millisecond)
	must(t, tb.Reshape(t.Context(), ShapeSpec{Topology: link.Topology{Up: links(long, a, b)}}))
	large := tb.shape.buffers["a"]
	must(t, tb.Reshape(t.Context(), base))
	if large <= small || tb.shape.buffers["a"] != large || tb.Environment()["link.congestion"] != "reno" {
		t.Errorf("buffers %d, of a long fast link %d, then %d; %v", small, large, tb.shape.buffers["a"],
			tb.Environment()["link.congestion"])
	}
	echoes(t, conn)

	if tb.Mode().Emulator != link.Own {
		return
	}
	apart := ShapeSpec{Changes: true, Topology: link.Topology{Pairs: ways(link.Params{Loss: 1}, a, b)}}
	must(t, tb.Reshape(t.Context(), apart))
	_, err = conn.Write([]byte("x"))
	must(t, err)
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes came through a partition", n)
	}
	must(t, tb.Reshape(t.Context(), base))
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = conn.Read(make([]byte, 1)) // after the partition has healed
	must(t, err)
}
