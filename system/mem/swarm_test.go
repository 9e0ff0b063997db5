package mem

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// TestSwarm checks that the upload rate of a node is shared equally among the nodes that fetch from
// it, and that nothing comes from nodes that are dead, beyond a partition, or unknown.
func TestSwarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := System{}.Start(t.Context(), system.Deployment{Options: system.Options{"nodes": "4", "up": "1000"}})
		must(t, err)
		var nodes []*Node
		var addresses []string
		for _, n := range c.Nodes() {
			nodes = append(nodes, n.(*Node))
			a, err := nodes[len(nodes)-1].Address(t.Context())
			must(t, err)
			addresses = append(addresses, a)
		}
		b := data(10_000)
		ref, err := nodes[0].Publish(t.Context(), "x", 10_000, bytes.NewReader(b))
		must(t, err)
		if again, err := nodes[1].Publish(t.Context(), "x", 10_000, bytes.NewReader(b)); err != nil || again != ref {
			t.Errorf("the same bytes and name: %s, %v, before %s", again, err, ref)
		}
		must(t, nodes[1].Forget(t.Context(), ref))
		fetch := func(i int, from ...string) {
			t.Helper()
			must(t, nodes[i].Fetch(t.Context(), ref, from))
		}
		want := func(when string, verified ...int64) {
			t.Helper()
			for i, v := range verified {
				f, err := nodes[i+1].Progress(t.Context(), ref)
				if err != nil || f.Verified < v-1 || f.Verified > v || f.Complete != (v == 10_000) {
					t.Errorf("%s: node %d: %+v, %v; want %d bytes", when, i+1, f, err, v)
				}
			}
		}
		fetch(1, addresses[0])
		fetch(2, addresses[0])
		fetch(3) // knows no other node
		time.Sleep(4 * time.Second)
		want("half each", 2000, 2000, 0)
		nodes[0].SetLinks(Links{Apart: []int{2, 3}})
		time.Sleep(4 * time.Second)
		want("one alone", 6000, 2000, 0)
		nodes[0].SetLinks(Links{Up: map[int]float64{0: 500}})
		fetch(3, addresses[0])
		time.Sleep(6 * time.Second)
		want("half the rate, for three", 7000, 3000, 1000)
		must(t, nodes[0].Kill(t.Context()))
		if _, err := nodes[0].Progress(t.Context(), ref); err == nil {
			t.Error("a dead node answers")
		}
		time.Sleep(time.Minute)
		want("no seeder", 7000, 3000, 1000)
		must(t, nodes[0].Restart(t.Context(), true))
		must(t, nodes[3].Restart(t.Context(), false))
		if _, err := nodes[3].Progress(t.Context(), ref); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("without its data: %v", err)
		}
		nodes[0].SetLinks(Links{Down: map[int]float64{1: 100}})
		time.Sleep(10 * time.Second)
		want("what a slow one cannot take is lost", 8000, 8000)
		nodes[0].SetLinks(Links{})
		time.Sleep(time.Minute)
		want("all", 10_000, 10_000)
		var got bytes.Buffer
		if err := nodes[1].ReadBack(t.Context(), ref, &got); err != nil || !bytes.Equal(got.Bytes(), b) {
			t.Errorf("read back: %d bytes, %v", got.Len(), err)
		}
		if received, sent := nodes[2].Moved(); fmt.Sprintf("%.0f %.0f", received, sent) != "10000 0" {
			t.Errorf("received %v, sent %v", received, sent)
		}
		nodes[1].SetTrouble(Trouble{Wrong: true})
		got.Reset()
		if err := nodes[1].ReadBack(t.Context(), ref, &got); err != nil || bytes.Equal(got.Bytes(), b) ||
			got.Len() != len(b) {
			t.Errorf("a node that lies: %d bytes, %v", got.Len(), err)
		}
		if err := nodes[1].ReadBack(t.Context(), "swarm/x", io.Discard); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("a ref of nothing: %v", err)
		}
	})
}
