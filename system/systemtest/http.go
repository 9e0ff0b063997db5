package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// target fetches an object as a load generator does: by its target alone.
func (k *objects) target() {
	o := k.store(k.seed, "target", Bytes("target", 600<<10))
	target, err := k.n.(system.HTTPServer).Target(o.ref)
	k.must("target", err)
	c := httpClient(k.T, k.from.Dial, target)
	k.wantContent(fmt.Sprint("GET ", target.URL), o.data, func(w io.Writer) error {
		return c.Get(k.ctx(), target, w)
	})
	if _, ok := k.n.(system.Ranger); !ok {
		return
	}
	k.wantContent(fmt.Sprint("a range of ", target.URL), o.data[1000:3000], func(w io.Writer) error {
		return c.GetRange(k.ctx(), target, 1000, 2000, w)
	})
	if got, noRange, _, head, err := c.Size(k.ctx(), target); got != 600<<10 || noRange || err != nil {
		k.Errorf("Content-Range has %d bytes, want %d (%v, %v)", got, 600<<10, head, err)
	}
}

// Fetch gets a target from the test's own host.
func Fetch(t *testing.T, target system.HTTPTarget) []byte {
	t.Helper()
	var got bytes.Buffer
	Must(t, httpClient(t, (&net.Dialer{}).DialContext, target).Get(Context(t), target, &got))
	return got.Bytes()
}

func httpClient(t *testing.T, dial web.Dial, target system.HTTPTarget) *web.Client {
	t.Helper()
	c, err := web.New("test", dial, target)
	Must(t, err)
	t.Cleanup(c.Close)
	return c
}

// cutOff leaves many clients in the middle of an answer: servers have been
// seen not to answer for a minute after that.
func (k *objects) cutOff() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	clients, size := int(k.size(100, 10)), k.size(24*mib, 12*mib)
	target, err := k.n.(system.HTTPServer).Target(k.seeded("cut-off", size))
	k.must("target", err)
	client := httpClient(k.T, k.from.Dial, target)
	ctx, cancel := context.WithCancel(k.ctx())
	defer cancel()
	var g errgroup.Group
	var half sync.WaitGroup
	half.Add(clients)
	for range clients {
		g.Go(func() error {
			arrived := sync.OnceFunc(half.Done)
			defer arrived()
			err := client.Get(ctx, target, &hook{after: mib, do: func() {
				arrived()
				<-ctx.Done() // with the answer under way
			}})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return fmt.Errorf("a get that was to be cancelled: %w", err)
		})
	}
	half.Wait()
	cancel()
	k.must("before the cut", g.Wait())
	defer k.soon("health after clients were cut off")()
	k.must(fmt.Sprintf("health after %d clients were cut off", clients), h.Health(k.ctx()))
}
