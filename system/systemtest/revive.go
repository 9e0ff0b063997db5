package systemtest

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// testRevive kills all processes of a deployment at once, as the end of a
// session by kill -9 does, and brings it up again on its directory, twice: all
// objects are there, under the same refs, and more can be stored and removed.
func testRevive(t *testing.T, s Suite) {
	reviver, ok := s.System.(system.Reviver)
	if !ok {
		t.Skip("a deployment cannot be brought up again")
	}
	hosts := s.hosts(t)
	d := system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(), Options: s.Options}
	if _, err := reviver.Revive(Context(t), d); err == nil {
		t.Fatal("an empty directory is revived")
	}
	c, err := d.Begin(Context(t), s.System, system.Start)
	if err != nil {
		t.Fatal(err)
	}
	data := map[system.Ref][]byte{}
	for i, size := range []int64{1, 56, 3000, 2*mib + 1} {
		b := Bytes(fmt.Sprint("revive ", i), size)
		data[put(t, storeOf(c), fmt.Sprint("run/revive-", i), b)] = b
	}
	for round := range 2 {
		kill(t, c.Nodes())
		if err := c.Stop(Context(t)); err != nil {
			t.Logf("stop of what was killed: %v", err) // what it says is not judged here
		}
		if c, err = reviver.Revive(Context(t), d); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		n := storeOf(c)
		for ref, b := range data {
			wantObject(t, n, ref, b)
		}
		listed(t, n, data)
		b := Bytes(fmt.Sprint("more ", round), 5000)
		data[put(t, n, fmt.Sprint("run/more-", round), b)] = b
	}
	n := storeOf(c)
	if del, ok := n.(system.Deleter); ok {
		for ref := range data {
			if err := del.Delete(Context(t), ref); err != nil {
				t.Errorf("delete of what an earlier session put: %v", err)
			}
			if err := n.Get(Context(t), ref, io.Discard); !errors.Is(err, system.ErrNotFound) {
				t.Errorf("get after delete: %v", err)
			}
		}
	}
	if err := c.Stop(Context(t)); err != nil {
		t.Error(err)
	}
}

// listed compares what a node lists with what was put.
func listed(t *testing.T, n system.Store, data map[system.Ref][]byte) {
	t.Helper()
	l, ok := n.(system.Lister)
	if !ok {
		return
	}
	all, err := l.List(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(data) {
		t.Errorf("%d objects are listed, %d were put", len(all), len(data))
	}
	for _, o := range all {
		if b, ok := data[o.Ref]; !ok || o.Size != int64(len(b)) {
			t.Errorf("listed is %+v, which was not put so", o)
		}
	}
}
