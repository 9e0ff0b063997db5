package siachain

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// inside runs what a node's process runs, in this one.
type inside struct {
	t       *testing.T
	control string
	end     context.CancelFunc
	ended   chan error
}

func begin(t *testing.T, what task) *inside {
	t.Helper()
	ctx, cancel := context.WithCancel(systemtest.Context(t))
	n := &inside{t: t, control: systemtest.FreeAddress(t), end: cancel, ended: make(chan error, 1)}
	go func() {
		n.ended <- System{}.Serve(ctx, []string{"--control=" + n.control, what.flag()}, io.Discard, io.Discard)
	}()
	t.Cleanup(cancel)
	n.listening()
	return n
}

// listening waits until the node listens: who dials it before that is refused, and
// the library dials again after minutes.
func (n *inside) listening() {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-n.ended:
			n.t.Fatalf("the node has ended: %v", err)
		default:
		}
		if resp, err := http.Get("http://" + n.control + member.HealthPath); err == nil {
			resp.Body.Close()
			return
		}
	}
	n.t.Fatal("the node does not listen")
}

func (n *inside) stop() {
	n.t.Helper()
	n.end()
	select {
	case err := <-n.ended:
		if err != nil {
			n.t.Errorf("a node that was told to end: %v", err)
		}
	case <-time.After(20 * time.Second):
		n.t.Fatal("a node that was told to end does not")
	}
}

func (n *inside) following() (f system.Following) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + n.control + statePath)
		if err != nil {
			continue // not yet
		}
		var s state
		err = json.NewDecoder(resp.Body).Decode(&s)
		resp.Body.Close()
		if err != nil || s.Failed != "" || s.Following == nil {
			n.t.Fatalf("%+v, %v", s, err)
		}
		return *s.Following
	}
	n.t.Fatal("the node does not answer")
	return f
}

// A node that is told to end while it syncs leaves a store that is whole, and goes
// on with it.
func TestEndsInTheMiddle(t *testing.T) {
	c, err := chain.Cache{Dir: t.TempDir()}.Chain(systemtest.Context(t), chain.Spec{Blocks: 900, Transactions: 1, Form: "v1", Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	listen, dir := systemtest.FreeAddress(t), t.TempDir()
	peer := begin(t, task{Do: "serve", Chain: c.Dir, Listen: listen})
	fresh := func() *inside {
		return begin(t, task{
			Do: "follow", Chain: c.Dir, Listen: systemtest.FreeAddress(t), Dir: dir, Peers: []string{listen},
			Settings: system.Options{"sync_interval": "100ms", "subscriber": "full", "db_sync": "off", "peer_discovery_interval": "100ms"},
		})
	}
	n := fresh()
	var f system.Following
	for f.Height == 0 {
		f = n.following()
	}
	n.stop()
	if f.Height >= 900 {
		t.Fatal("it was not in the middle")
	}
	if f.Target != 900 {
		t.Errorf("the headers are known, and the target is %d", f.Target)
	}
	// a process takes with it what is still under way; this one does not
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		store, err := chain.OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), chain.StoreOptions{})
		if err == nil {
			err = store.Close()
		}
		if errors.Is(err, bbolterrors.ErrTimeout) && time.Now().Before(end) {
			continue
		}
		if err != nil {
			t.Errorf("the store after an end in the middle: %v", err)
		}
		break
	}
	n = fresh()
	again := n.following() // where the machine is busy, the first process came to the end while it was ending
	if again.Height < f.Height || again.Indexed > again.Height {
		t.Errorf("ended at %+v, went on at %+v", f, again)
	}
	for end := time.Now().Add(time.Minute); f.Tip != c.Tip.ID.String() || f.Indexed < 900; time.Sleep(20 * time.Millisecond) {
		if f = n.following(); time.Now().After(end) {
			t.Fatalf("not whole after a minute: %+v", f)
		}
	}
	if again.Height < 900 && (f.Commits < 9 || f.Peers[0].Blocks < 1 || f.Peers[0].Requests < 1 || f.Peers[0].Busy <= 0 || f.TimedOut+f.Failed != 0) {
		t.Errorf("whole, and %+v", f)
	}
	n.stop()
	peer.stop()
	if err := chaincache.Check(systemtest.Context(t), c.Dir, &c.Manifest); err != nil {
		t.Errorf("serving has changed the chain: %v", err)
	}
}
