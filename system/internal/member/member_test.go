package member

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

var must = systemtest.Must

// fake is a node.
type fake struct {
	Backend
	counts Counts
}

func (f *fake) Count(context.Context) (Counts, error) { return f.counts, nil }

func (f *fake) Apart(_ context.Context, peers []string) ([]string, error) { return peers, nil }

// Connect does not reach the peer "dead".
func (f *fake) Connect(ctx context.Context, address string) error {
	if address == "dead" {
		<-ctx.Done()
		return errors.New("dial tcp 10.0.0.7:4001: i/o timeout")
	}
	return nil
}

// fakeContents has one content, "ref", of 100 bytes.
func fakeContents(f *fake) (*Contents, *Content) {
	n := &Contents{Backend: f, Name: "x", Ref: func(system.Ref) error { return nil }, Runs: func() error { return nil }}
	c := n.content("ref", f.counts)
	c.SetSize(100, 0)
	return n, c
}

// TestDeadPeers checks that a dead peer delays the others by dialTime at most.
func TestDeadPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := fakeContents(&fake{})
		c.state.From = []string{"dead", "alive"}
		begin := time.Now()
		n.dial(t.Context(), c)
		if took := time.Since(begin); took > dialTime {
			t.Errorf("one dead peer holds the others up for %v", took)
		}
	})
}

// TestCountsBeginAnew checks that progress is never negative while a node restarts.
func TestCountsBeginAnew(t *testing.T) {
	f := &fake{counts: Counts{Received: 500, Sent: 50}}
	n, c := fakeContents(f)
	c.finish()
	must(t, n.Restarted(true, func() error {
		f.counts = Counts{}
		if got, err := n.Progress(t.Context(), "ref"); err != nil || got.Received != 0 || got.Sent != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		return nil
	}))
}

// TestLeavesAreNotAsked checks that leechers ask only publishers if nodes do not pass content on.
func TestLeavesAreNotAsked(t *testing.T) {
	k := &Swarm{Name: "some", Leaf: true}
	if _, err := k.task("x", []string{"a"}); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("never published: %v", err)
	}
	for _, address := range []string{"a", "b"} {
		k.publish("x", []byte(`1`), address)
		k.publish("y", []byte(`2`), address)
	}
	want := func(ref system.Ref, from ...string) {
		t.Helper()
		got, err := k.task(ref, []string{"c", "b", "d", "a"})
		if err != nil || !slices.Equal(got.From, from) {
			t.Errorf("%s is asked of %v (%v), want %v", ref, got.From, err, from)
		}
	}
	want("x", "b", "a")
	k.drop("x", "b")
	want("x", "a")
	want("y", "b", "a")
	k.drop("", "a") // it restarts empty
	want("x", "c", "b", "d", "a")
	want("y", "b")
	k.Leaf = false
	want("y", "c", "b", "d", "a")
}
