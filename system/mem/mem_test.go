package mem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

func TestMain(m *testing.M) { systemtest.Main(m, System{}) }

func TestConformance(t *testing.T) {
	for name, opt := range map[string]system.Options{
		"defaults": nil,
		"distant": {"a": "1ms", "r": "2", "dial": "1", "rtt": "2ms", "rate": "2147483648",
			"settle": "20ms", "cache": "true", "nodes": "3", "expansion": "1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			systemtest.Run(t, systemtest.Suite{System: System{}, Options: opt, Truths: systemtest.Truths{
				InProcess: true, Unknown: []system.Ref{"object/no-such-object", "mutable/no-such-object",
					"dir/no-such-object"},
			}})
		})
	}
}

func startNode(t *testing.T, opt system.Options) *Node {
	t.Helper()
	c, err := System{}.Start(t.Context(), system.Deployment{Options: opt})
	must(t, err)
	return c.Nodes()[0].(*Node)
}

func data(size int) []byte { return systemtest.Bytes("mem", int64(size)) }

func put(t *testing.T, n *Node, b []byte) system.Ref {
	t.Helper()
	ref, err := n.Put(t.Context(), "x", int64(len(b)), bytes.NewReader(b))
	must(t, err)
	return ref
}

// TestTimes compares each operation with the model in virtual time, to the nanosecond.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, system.Options{
			"a": "10ms", "r": "9", "dial": "3", "rate": "1000000", "settle": "1m0s", "cache": "true",
		})
		took := func(do func() error) time.Duration {
			t.Helper()
			from := time.Now()
			must(t, do())
			return time.Since(from)
		}
		want := func(what string, got, want time.Duration) {
			t.Helper()
			if got != want {
				t.Errorf("%s took %v, want %v", what, got, want)
			}
		}
		const ms = time.Millisecond
		for _, rtt := range []time.Duration{0, 14 * ms, 80 * ms} {
			n.Change(func(m *Model) { m.RTT = rtt })
			must(t, n.Redial(t.Context()))
			var ref system.Ref
			store := func(size int) func() error {
				return func() error { ref = put(t, n, data(size)); return nil }
			}
			get := func() error { return n.Get(t.Context(), ref, io.Discard) }
			cool := func() error { return n.Cool(t.Context(), ref) }
			want("the first put", took(store(1000)), 10*ms+12*rtt+ms)
			want("another put", took(store(500_000)), 10*ms+9*rtt+500*ms)
			want("a large put", took(store(2_000_000)), 10*ms+9*rtt+2000*ms)
			want("settle", took(func() error { return n.Settle(t.Context(), ref) }), time.Minute)
			want("settle again", took(func() error { return n.Settle(t.Context(), ref) }), 0)
			want("a warm get", took(get), 10*ms)
			want("cool", took(cool), 0)
			want("a get", took(get), 10*ms+9*rtt+2000*ms)
			want("stat", took(func() error { _, err := n.Stat(t.Context(), ref); return err }), 10*ms+9*rtt)
			want("cool", took(cool), 0)
			want("a range", took(func() error { return n.GetRange(t.Context(), ref, 777, 100_000, io.Discard) }),
				10*ms+9*rtt+100*ms)
			want("seed", took(func() error {
				_, err := n.Seed(t.Context(), "seeded", 1000, bytes.NewReader(data(1000)))
				return err
			}), 0)
			must(t, n.Redial(t.Context()))
			want("a delete on a fresh connection", took(func() error { return n.Delete(t.Context(), ref) }),
				10*ms+12*rtt)
			phases, err := n.Phases(t.Context())
			if err != nil || len(phases) != 3 || phases[0].Took != 10*ms || phases[1].Took != 12*rtt ||
				phases[2].Took != 0 {
				t.Errorf("phases %v, %v", phases, err)
			}
		}
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, system.Options{"seed": "3"})
		b := data(200_000)
		ref := put(t, n, b)
		fetch := func() ([]byte, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var got bytes.Buffer
			err := n.Get(ctx, ref, &got)
			return got.Bytes(), err
		}
		only := func(set func(*Model)) {
			n.Change(func(m *Model) { m.Errors, m.Hangs, m.Corrupt, m.Truncate = 0, 0, 0, 0; set(m) })
		}
		only(func(m *Model) { m.Errors = 1 })
		if _, err := fetch(); !errors.Is(err, ErrInjected) || !strings.HasPrefix(err.Error(), "mem: ") {
			t.Errorf("error: %v", err)
		}
		only(func(m *Model) { m.Hangs = 1 })
		from := time.Now()
		if _, err := fetch(); !errors.Is(err, context.DeadlineExceeded) || time.Since(from) != time.Second {
			t.Errorf("hang: %v after %v", err, time.Since(from))
		}
		only(func(m *Model) { m.Corrupt = 1 })
		got, err := fetch()
		wrong := 0
		for i := range got {
			if got[i] != b[i] {
				wrong++
			}
		}
		if err != nil || len(got) != len(b) || wrong != 1 {
			t.Errorf("corruption: %d bytes, %d of them wrong, %v", len(got), wrong, err)
		}
		only(func(m *Model) { m.Truncate = 1 })
		if got, err := fetch(); err != nil || len(got) >= len(b) || !bytes.HasPrefix(b, got) {
			t.Errorf("truncation: %d bytes, %v", len(got), err)
		}
		// Corrupt content of a read was not stored.
		only(func(*Model) {})
		if got, err := fetch(); err != nil || !bytes.Equal(got, b) {
			t.Errorf("without faults: %d bytes, %v", len(got), err)
		}
		only(func(m *Model) { m.Errors = 0.25 })
		failed := 0
		for range 1000 {
			if _, err := fetch(); err != nil {
				failed++
			}
		}
		if failed < 200 || failed > 300 {
			t.Errorf("%d of 1000 operations failed, with a share of 0.25", failed)
		}
	})
}
