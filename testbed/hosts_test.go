package testbed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// echoes sends bytes through conn and expects them back.
func echoes(t *testing.T, c net.Conn) {
	t.Helper()
	want := bytes.Repeat([]byte("ship"), 64<<10)
	go func() { _, _ = c.Write(want) }()
	got := make([]byte, len(want))
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("echo: %v, equal %v", err, bytes.Equal(got, want))
	}
}

// dialer is a ready probe: something accepts connections at addr.
func dialer(h Host, addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := h.Dial(ctx, "tcp", addr)
		if err == nil {
			err = c.Close()
		}
		return err
	}
}

func startEcho(t *testing.T, h *host) (*process, string) {
	t.Helper()
	port, err := h.Port(t.Context(), 0)
	must(t, err)
	addr := net.JoinHostPort(h.Addr().String(), strconv.Itoa(port))
	c := fakeCommand(t, "echo", "echo", addr)
	c.Ready = dialer(h, addr)
	return start(t, h, c), addr
}

// dial connects a host to an address until the test ends.
func dial(t *testing.T, h *host, addr string) net.Conn {
	t.Helper()
	c, err := h.Dial(t.Context(), "tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestHostsReachOneAnother(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]Options{"ipv4": {}, "ipv6": {IPv6: true}, "plain": {Plain: true}} {
		t.Run(name, func(t *testing.T) {
			if !opt.Plain {
				needNamespaces(t)
			}
			tb, a, b := twoHosts(t, opt)
			if got := tb.Mode().Namespaces; got == opt.Plain {
				t.Fatalf("namespaces: %v", got)
			}
			c := addHost(t, tb, "c")
			_, addr := startEcho(t, a)
			for _, h := range []*host{a, b, c} {
				conn := dial(t, h, addr)
				from := netip.MustParseAddrPort(conn.LocalAddr().String()).Addr()
				if !opt.Plain && from != h.Addr() {
					t.Errorf("connection of host %s comes from %s, want %s", h.Name(), from, h.Addr())
				}
				echoes(t, conn)
			}
		})
	}
}

func TestHostsAreIsolated(t *testing.T) {
	needNamespaces(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0") // on the machine's loopback
	must(t, err)
	defer outside.Close()
	before, err := net.Interfaces()
	must(t, err)
	tb := newTestbed(t, Options{})
	a := addHost(t, tb, "a")

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if c, err := a.Dial(ctx, "tcp", outside.Addr().String()); err == nil {
		t.Errorf("a host reaches the machine's loopback: %v", c.RemoteAddr())
	}
	for _, addr := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "8.8.8.8:53"} { // no route, so nothing is sent
		if _, err := a.Dial(ctx, "tcp", addr); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s: %v, want network unreachable", addr, err)
		}
	}
	// Nothing of it is seen on the machine, so nothing there can lead to it.
	after, err := net.Interfaces()
	must(t, err)
	if len(after) != len(before) {
		t.Errorf("interfaces: %v, before %v", after, before)
	}
}

// A slow dial delays nothing else on the host.
func TestDialsDoNotWaitForOneAnother(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	_, a, b := twoHosts(t, Options{})
	_, addr := startEcho(t, a)
	hole := netip.AddrPortFrom(hostAddr(prefix4, 99), 80).String() // on the network, but nobody
	ctx, cancel := context.WithCancel(t.Context())
	dialed := make(chan error, 1)
	go func() {
		_, err := b.Dial(ctx, "tcp", hole)
		dialed <- err
	}()
	dial(t, b, addr)
	cancel()
	wantError(t, <-dialed, "cancel")
}

// threads are the network namespaces of all our threads.
func threads(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	must(t, err)
	for _, task := range tasks {
		if ns, err := os.Readlink(task); err == nil {
			out[ns]++
		}
	}
	return out
}

func TestNothingLeaks(t *testing.T) {
	for _, opt := range []Options{{Plain: true}, {}} {
		if !opt.Plain {
			needNamespaces(t)
		}
		round := func() {
			opt.Dir = t.TempDir()
			tb, err := New(t.Context(), opt)
			must(t, err)
			a, b := addHost(t, tb, "a"), addHost(t, tb, "b")
			p, addr := startEcho(t, a)
			must(t, tb.Shape(t.Context(), upOf(a, access(0, time.Millisecond))))
			stop := tb.Observe(time.Now(), 10*time.Millisecond, func([]record.Sample) {})
			c, err := b.Dial(t.Context(), "tcp", addr)
			must(t, err)
			echoes(t, c)
			_ = c.Close()
			stop()
			must(t, tb.Close(t.Context()))
			must(t, tb.Close(t.Context()))
			if alive(p.pid) {
				t.Error("a process is left")
			}
			if _, err := a.Start(t.Context(), Command{Name: "late", Args: []string{"true"}}); err == nil {
				t.Error("a process was started after close")
			}
		}
		round()
		count := func() (int, int) {
			all, _ := os.ReadDir("/proc/self/fd")
			return runtime.NumGoroutine(), len(all)
		}
		goroutines, files := count()
		for range 5 {
			round()
		}
		eventually(t, "goroutines and descriptors as before", func() bool {
			g, f := count()
			return g <= goroutines && f <= files
		})
		own, err := os.Readlink("/proc/self/ns/net")
		must(t, err)
		eventually(t, "all threads at home", func() bool {
			all := threads(t)
			return len(all) == 1 && all[own] > 0
		})
		if n := threads(t)[own]; n > 40 {
			t.Errorf("%d threads", n)
		}
	}
}
