package testbed

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"
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

func startEcho(t *testing.T, h *host, name string) (*Process, string) {
	t.Helper()
	port, err := h.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort(h.Addr().String(), strconv.Itoa(port))
	p, err := h.Start(t.Context(), Command{Name: name, Role: "system", Args: []string{self(t), "fake", "echo", addr}, Ready: dialer(h, addr)})
	if err != nil {
		t.Fatal(err)
	}
	return p, addr
}

func TestHostsReachOneAnother(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  Options
	}{{"ipv4", Options{}}, {"ipv6", Options{IPv6: true}}, {"plain", Options{Plain: true}}} {
		t.Run(tc.name, func(t *testing.T) {
			if !tc.opt.Plain {
				needNamespaces(t)
			}
			tb := newTestbed(t, tc.opt)
			if got := tb.Mode().Namespaces; got == tc.opt.Plain {
				t.Fatalf("namespaces: %v", got)
			}
			a, b, c := addHost(t, tb, "a"), addHost(t, tb, "b"), addHost(t, tb, "c")
			_, addr := startEcho(t, a, "echo")
			for _, h := range []*host{a, b, c} {
				conn, err := h.Dial(t.Context(), "tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				if from := netip.MustParseAddrPort(conn.LocalAddr().String()).Addr(); from != h.Addr() {
					t.Errorf("connection of host %s comes from %s, want %s", h.Name(), from, h.Addr())
				}
				echoes(t, conn)
				_ = conn.Close()
			}
		})
	}
}
