package kubo

import (
	"bytes"
	"io"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// live starts two real nodes in namespaces.
func live(t *testing.T, opt system.Options) private {
	t.Helper()
	systemtest.Need(t, name, system.Check(t.Context(), System{}, opt))
	return systemtest.Start(t, System{}, opt, systemtest.HostsOf(t, testbed.Options{}, 2)).Nodes()[0].(private)
}

// TestLiveColdReads: what Cool has made cold comes over the link again, whole, also
// after the nodes had parted.
func TestLiveColdReads(t *testing.T) {
	const size = 3<<20 + 7
	n := live(t, nil)
	data := systemtest.Bytes("cold", size)
	ref, err := n.Put(systemtest.Context(t), "cold", size, bytes.NewReader(data))
	must(t, err)
	for _, redial := range []bool{false, true} {
		must(t, n.Cool(systemtest.Context(t), ref))
		if redial {
			must(t, n.Redial(systemtest.Context(t)))
		}
		before, err := n.Near().Used(systemtest.Context(t))
		must(t, err)
		var got bytes.Buffer
		if err := n.Get(systemtest.Context(t), ref, &got); err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Fatalf("get: %d bytes, %v", got.Len(), err)
		}
		if after, err := n.Near().Used(systemtest.Context(t)); err != nil || after-before < size {
			t.Errorf("the client's repo grew by %d bytes when it read %d that it did not have (%v)", after-before, size,
				err)
		}
	}
}

// TestLiveRedials: as many fresh connections in a row as there are reads; the
// daemon's own limit is lower.
func TestLiveRedials(t *testing.T) {
	n := live(t, nil)
	ref, err := n.Seed(systemtest.Context(t), "x", 100, systemtest.Content("redials", 100))
	must(t, err)
	for i := range 60 {
		must(t, n.Redial(systemtest.Context(t)))
		if err := n.Get(systemtest.Context(t), ref, io.Discard); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
}
