package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
)

func testRedial(t *testing.T, n system.Store) {
	r, ok := n.(system.Redialer)
	if !ok {
		t.Skip("connections cannot be made anew")
	}
	data := Bytes("redial", 100_000)
	ref := put(t, n, "redial", data)
	for range 3 {
		if err := r.Redial(Context(t)); err != nil {
			t.Fatalf("redial: %v", err)
		}
		wantObject(t, n, ref, data)
	}
	// Beside operations of others: those end as if nothing had been.
	g, ctx := errgroup.WithContext(Context(t))
	for i := range 4 {
		g.Go(func() error {
			for k := range 5 {
				if i == 0 {
					if err := r.Redial(ctx); err != nil {
						return fmt.Errorf("redial: %w", err)
					}
					continue
				}
				name := fmt.Sprintf("redial-%d-%d", i, k)
				data := Bytes(name, 50_000)
				ref, err := n.Put(ctx, name, int64(len(data)), bytes.NewReader(data))
				if err != nil {
					return err
				}
				var got bytes.Buffer
				if err := n.Get(ctx, ref, &got); err != nil {
					return err
				}
				if !bytes.Equal(got.Bytes(), data) {
					return fmt.Errorf("%s: got other bytes", name)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Errorf("redial beside operations: %v", err)
	}
}

func testConnect(t *testing.T, c system.Cluster) {
	n, ok := c.Nodes()[0].(system.Connector)
	if !ok {
		t.Skip("nodes cannot be told of each other")
	}
	for i, other := range c.Nodes() {
		address, err := other.(system.Connector).Address(Context(t))
		if err != nil || address == "" {
			t.Fatalf("address of node %d: %q, %v", i, address, err)
		}
		if i == 0 {
			continue
		}
		for range 2 { // who is connected stays so
			if err := n.Connect(Context(t), address); err != nil {
				t.Errorf("connect to node %d: %v", i, err)
			}
		}
	}
	within(t, "connect to what is no address", func() {
		if err := n.Connect(Context(t), "no address"); err == nil {
			t.Error("connected to what is no address")
		}
	})
	ctx, cancel := context.WithCancel(Context(t))
	cancel()
	if address, err := n.Address(Context(t)); err == nil {
		if err := n.Connect(ctx, address); err == nil {
			t.Error("connect with a context that ended before: no error")
		}
	}
}
