package tahoe

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// one is the smallest grid: a storage node and a client.
func one() system.Options { return system.Options{"nodes": "1", "needed": "1", "total": "1"} }

func attach(t *testing.T, opt system.Options, write bool) (system.Cluster, error) {
	t.Helper()
	c, err := system.Begin(systemtest.Context(t), System{}, system.Attach,
		system.Deployment{Client: systemtest.Hosts(t, 1)[0], Dir: t.TempDir(), Options: opt, Write: write})
	if err == nil {
		t.Cleanup(func() { c.Stop(t.Context()) })
	}
	return c, err
}

func TestAttach(t *testing.T) {
	_, n := startFor(t, one())
	refs := []string{string(mustPut(t, n, "small", 100)), string(mustPut(t, n, "large", 300_000)),
		string(mustPut(t, n, "literal", 10))}
	opt := system.Options{"url": n.base.String(), "caps": strings.Join(refs, "\n")}

	c, err := attach(t, opt, true)
	must(t, err)
	if id := c.Identity(); id["protocol"] != "gbs" || id["nodes"] != "1 of 1 known are connected" {
		t.Errorf("identity %v", id)
	}
	w := c.Nodes()[0].(system.Store)
	if _, ok := w.(system.Stats); ok {
		t.Error("an attached node tells what disks hold that it does not see")
	}
	wantContent(t, w, mustPut(t, w, "mine", 3000), systemtest.Bytes("mine", 3000))
	if phases, err := w.(system.Phaser).Phases(systemtest.Context(t)); err != nil || len(phases) == 0 {
		t.Errorf("phases %v, %v", phases, err)
	}
	if c, err = attach(t, opt, false); err != nil {
		t.Fatal(err)
	}
	r := c.Nodes()[0].(*node)
	if _, err := r.PutMutable(systemtest.Context(t), "m", 1, strings.NewReader("m")); !errors.Is(err,
		system.ErrReadOnly) {
		t.Errorf("put mutable without allow: write: %v", err)
	}
	if _, err := r.MakeDirectory(systemtest.Context(t), "d"); !errors.Is(err, system.ErrReadOnly) {
		t.Errorf("make directory without allow: write: %v", err)
	}
	for want, opt := range map[string]system.Options{
		"nothing to read":    {"url": opt["url"]},
		"not the URL":        {"url": "localhost:3456"},
		"connection refused": {"url": "http://127.0.0.1:1", "caps": refs[0]},
		"not a cap":          {"url": opt["url"], "caps": "URI:CHK:x"},
	} {
		if _, err := attach(t, opt, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("attach with %v: %v, want %q", opt, err, want)
		}
	}
	attached := truths()
	attached.Without = []string{"stats"} // the disks are someone's
	systemtest.Run(t, systemtest.Suite{System: System{}, Truths: attached, Attach: func(t *testing.T) (system.Options,
		func()) {
		return opt, func() {
			if err := n.Stop(systemtest.Context(t)); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := n.Get(systemtest.Context(t), system.Ref(refs[0]), io.Discard); err == nil {
		t.Error("get from a client that has ended: no error")
	}
}
