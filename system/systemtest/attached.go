package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// runAttached is for systems which read what was there before us.
func runAttached(t *testing.T, s Suite) {
	opt, kill := s.Attach(t)
	s.Options = opt
	if p := system.Check(Context(t), s.System, opt); len(p) > 0 {
		t.Fatalf("check: %v", p)
	}
	k := s.start(t)
	n := k.c.Nodes()[0].(system.Getter)
	if len(n.Processes()) != 0 {
		t.Error("an attached node has processes")
	}
	found, err := system.Found(k.ctx(), n)
	if err != nil || len(found) == 0 {
		t.Fatalf("objects %v, error %v", found, err)
	}
	for _, o := range found {
		t.Run("object "+string(o.Ref), func(t *testing.T) { kit{t}.wantProvided(n, o) })
	}
	k.wantAbilities(s.System, k.c, s.Truths.Without)
	k.unknownRefs(n)
	if _, pays := n.(system.Coster); pays {
		k.costs(n)
	}
	if _, monitored := n.(system.Monitored); monitored {
		k.monitor(n)
	}
	if k.n != nil {
		k.fails("put", errorOf(k.n.Put(k.ctx(), "x", 1, Content("x", 1))), system.ErrReadOnly)
	}
	k.fails("get with a context that ended before", n.Get(ended(), found[0].Ref, io.Discard), context.Canceled)
	k.must("health", n.(system.Healther).Health(k.ctx()))
	kill()
	k.wantGone(n, found[0].Ref)
}

// wantProvided compares what a node says of an object with what it gives.
func (k kit) wantProvided(n system.Getter, o system.Object) {
	var all bytes.Buffer
	k.must("get", n.Get(k.ctx(), o.Ref, &all))
	got := all.Bytes()
	if o.Size >= 0 && int64(len(got)) != o.Size {
		k.Errorf("%d bytes, said to be %d", len(got), o.Size)
	}
	payload := got
	if o.Payload > 0 {
		payload = got[:o.Payload]
	}
	if sum := sha256.Sum256(payload); o.SHA256 != "" && o.SHA256 != hex.EncodeToString(sum[:]) {
		k.Errorf("not the content that its sha256 says")
	}
	if r, ok := n.(system.Ranger); ok && !o.NoRange && len(got) > 2000 {
		k.wantRanges(r, object{o.Ref, got})
	}
	target, err := n.(system.HTTPServer).Target(o.Ref)
	k.must("target", err)
	if body := Fetch(k.T, target); !bytes.Equal(body, got) {
		k.Errorf("GET %s: %d bytes that differ from the %d of a get", target.URL, len(body), len(got))
	}
}
