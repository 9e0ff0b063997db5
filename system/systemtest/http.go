package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// target fetches an object as a load generator does: by its target alone.
func (k *objects) target() {
	const size = 600 << 10
	data := Bytes("target", size)
	target, err := k.n.(system.HTTPServer).Target(k.seeded("target", size))
	must(k.T, "target", err)
	c := httpClient(k.T, k.from.Dial, target)
	wantContent(k.T, fmt.Sprint("GET ", target.URL), data, func(w io.Writer) error {
		return c.Get(Context(k.T), target, w)
	})
	if _, ok := k.n.(system.Ranger); !ok {
		return
	}
	wantContent(k.T, fmt.Sprint("a range of ", target.URL), data[1000:3000], func(w io.Writer) error {
		return c.GetRange(Context(k.T), target, 1000, 2000, w)
	})
	if got, noRange, _, head, err := c.Size(Context(k.T), target); got != size || noRange || err != nil {
		k.Errorf("Content-Range has %d bytes, want %d (%v, %v)", got, size, head, err)
	}
}

// Fetch gets a target from the test's own host.
func Fetch(t *testing.T, target system.HTTPTarget) []byte {
	t.Helper()
	var got bytes.Buffer
	must(t, "GET", httpClient(t, (&net.Dialer{}).DialContext, target).Get(Context(t), target, &got))
	return got.Bytes()
}

func httpClient(t *testing.T, dial web.Dial, target system.HTTPTarget) *web.Client {
	t.Helper()
	c, err := web.New("test", dial, target)
	must(t, "client", err)
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
	must(k.T, "target", err)
	client := httpClient(k.T, k.from.Dial, target)
	ctx, cancel := context.WithCancel(Context(k.T))
	defer cancel()
	var g errgroup.Group
	var half sync.WaitGroup
	half.Add(clients)
	for range clients {
		g.Go(func() error {
			arrived := sync.OnceFunc(half.Done)
			defer arrived()
			resp, err := client.Open(ctx, web.Call{Method: http.MethodGet, URL: target.URL, Header: target.Header})
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := io.CopyN(io.Discard, resp.Body, mib); err != nil {
				return err
			}
			arrived()
			<-ctx.Done() // with the answer under way
			return nil
		})
	}
	half.Wait()
	cancel()
	if err := g.Wait(); err != nil {
		k.Errorf("before the cut: %v", err)
	}
	within(k.T, "health after clients were cut off", func() {
		if err := h.Health(Context(k.T)); err != nil {
			k.Errorf("health after %d clients were cut off: %v", clients, err)
		}
	})
}
