package testbed

import (
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// needEmulator makes a testbed with an emulator and hosts a and b, or skips.
func needEmulator(t *testing.T, opt Options) (tb *Testbed, a, b *host) {
	t.Helper()
	needNamespaces(t)
	tb, a, b = twoHosts(t, opt)
	if m := tb.Mode(); m.Emulator == "none" {
		t.Skip(m.Why)
	}
	return tb, a, b
}

func access(rate float64, delay time.Duration) link.Params {
	return link.Params{Rate: rate, Delay: delay}
}

// links gives each of these hosts the same link.
func links(p link.Params, hosts ...*host) map[string]link.Params {
	all := map[string]link.Params{}
	for _, h := range hosts {
		all[h.addr.String()] = p
	}
	return all
}

// ways are the paths between two hosts in both directions.
func ways(p link.Params, a, b *host) map[link.Pair]link.Params {
	one, other := a.addr.String(), b.addr.String()
	return map[link.Pair]link.Params{{one, other}: p, {other, one}: p}
}

// upOf shapes the uplink of one host.
func upOf(h Host, p link.Params) ShapeSpec {
	return ShapeSpec{Topology: link.Topology{Up: map[string]link.Params{h.Addr().String(): p}}}
}

func TestShapedLinkIsMeasured(t *testing.T) {
	tb, a, b := needEmulator(t, Options{IPv6: true}) // IPv4 is that of most tests
	_, addr := startEcho(t, a)                       // listens before the link changes
	both := links(access(100e6, 20*time.Millisecond), a)
	spec := ShapeSpec{Topology: link.Topology{Up: both, Down: both}}
	must(t, tb.Shape(t.Context(), spec))
	c, err := tb.Check(t.Context(), a, b, 0.1)
	must(t, err)
	if c.RTT < 0.040 || c.Rate > 100e6 || c.Emulator != tb.Mode().Emulator || c.Congestion != DefaultCongestion {
		t.Errorf("shaped link: %+v", c)
	}
	echoes(t, dial(t, b, addr))

	// Back to a link that is not shaped.
	must(t, tb.Shape(t.Context(), ShapeSpec{Congestion: "reno"}))
	u, err := tb.Check(t.Context(), a, b, 0.1)
	must(t, err)
	if u.RTT > c.RTT/2 || u.Rate < 2*c.Rate || u.Emulator != "none" || u.Congestion != "reno" {
		t.Errorf("link after shaping was taken away: %+v", u)
	}
}

// TestRateAlone: the kernel shapes a link that has a rate and nothing else, where it can.
func TestRateAlone(t *testing.T) {
	tb, a, b := needEmulator(t, Options{})
	if !tb.shape.tbfWorks() {
		t.Skip("the kernel shapes rates in no other way here than what it shapes all with")
	}
	for _, c := range []struct {
		params link.Params
		want   string
	}{
		{link.Params{Rate: 100e6}, "tbf"},
		{link.Params{Rate: 100e6, Delay: 5 * time.Millisecond}, link.Own},
		{link.Params{Rate: 50e6}, "tbf"},
		{link.Params{}, "none"},
	} {
		must(t, tb.Shape(t.Context(), ShapeSpec{Topology: link.Topology{Down: links(c.params, b)}}))
		m, err := tb.Check(t.Context(), a, b, 0.1)
		must(t, err)
		if m.Emulator != c.want || c.params.Rate > 0 && m.Rate > c.params.Rate {
			t.Errorf("%+v: %+v, want emulator %s", c.params, m, c.want)
		}
	}
}

func TestBuffersFollowTheProduct(t *testing.T) {
	if got, want := bufferMax(link.BDP(1e9, 80*time.Millisecond), receiveMaxMin),
		int64(30e6); math.Abs(float64(got-want)) > 4096 {
		t.Errorf("1 Gbit/s × 80 ms: %d, want %d", got, want)
	}
	if got := bufferMax(0, receiveMaxMin); got != receiveMaxMin {
		t.Errorf("no delay: %d", got)
	}
	tb, a, b := needEmulator(t, Options{})
	must(t, tb.Shape(t.Context(), ShapeSpec{Topology: link.Topology{
		Up: links(access(1e9, 0), a, b), Pairs: ways(access(0, 40*time.Millisecond), a, b)}}))
	for _, h := range []*host{a, b} {
		for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
			var got string
			must(t, h.keeper.do(func() error { got = readSysctl(key); return nil }))
			if !strings.HasSuffix(got, " 30003200") {
				t.Errorf("host %s: %s = %q", h.name, key, got)
			}
		}
	}
	if env := tb.Environment(); env["link.congestion"] != "cubic" || env["host.net.ipv4.tcp_no_metrics_save"] != "1" {
		t.Errorf("environment: %v", env)
	}
}

func TestEmulatorDiesAndIsStartedAgain(t *testing.T) {
	tb, a, b := needEmulator(t, Options{Emulate: link.Own})
	spec := upOf(a, access(0, 5*time.Millisecond))
	must(t, tb.Shape(t.Context(), spec))
	polled := tb.Poll(time.Now())
	i := slices.IndexFunc(polled, func(s record.Sample) bool { return s.Role == "emulator" })
	if i < 0 {
		t.Fatal("the emulator is not observed")
	}
	must(t, tb.EmulatorErr())
	_ = syscall.Kill(polled[i].PID, syscall.SIGKILL)
	eventually(t, "the emulator's death is noticed", func() bool { return tb.EmulatorErr() != nil })
	if _, err := tb.Check(t.Context(), a, b, 0); err == nil {
		t.Error("check works without its emulator")
	}
	must(t, tb.Shape(t.Context(), spec))
	_, addr := startEcho(t, a)
	echoes(t, dial(t, b, addr))
}

// Both ends of a connection have the congestion control asked for: the server's,
// which sends the data, is made by the kernel when it accepts.
func TestCongestionOfBothEnds(t *testing.T) {
	needNamespaces(t)
	for _, opt := range []Options{{Emulate: "none"}, {Emulate: "none", IPv6: true}, {}, {IPv6: true}} {
		tb, a, b := twoHosts(t, opt)
		for _, want := range []string{"cubic", "reno"} {
			must(t, tb.Shape(t.Context(),
				ShapeSpec{Congestion: want, Topology: upOf(a, access(0, time.Millisecond)).Topology}))
			l, err := a.Listen(t.Context(), "tcp", net.JoinHostPort(a.Addr().String(), "0"))
			must(t, err)
			client, err := b.Dial(t.Context(), "tcp", l.Addr().String())
			must(t, err)
			server, err := l.Accept()
			must(t, err)
			for end, c := range map[string]net.Conn{"client": client, "server": server} {
				raw, err := c.(*net.TCPConn).SyscallConn()
				must(t, err)
				var got string
				e := raw.Control(func(fd uintptr) {
					got, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
				})
				must(t, errors.Join(e, err))
				if got != want {
					t.Errorf("%+v: the %s has %q, want %q", opt, end, got, want)
				}
				_ = c.Close()
			}
			_ = l.Close()
		}
	}
}

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
