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
	objects, err := system.Found(Context(t), n)
	if err != nil || len(objects) == 0 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	for _, o := range objects {
		t.Run("object "+string(o.Ref), func(t *testing.T) { wantProvided(t, n, o) })
	}
	wantAbilities(t, s.System, k.c, s.Truths.Without)
	k.unknownRefs(n)
	if _, pays := n.(system.Coster); pays {
		k.costs(n)
	}
	if _, monitored := n.(system.Monitored); monitored {
		k.monitor(n)
	}
	if k.n != nil {
		_, err := k.n.Put(Context(t), "x", 1, Content("x", 1))
		fails(t, "put", err, system.ErrReadOnly)
	}
	fails(t, "get with a context that ended before", n.Get(ended(), objects[0].Ref, io.Discard), context.Canceled)
	must(t, "health", n.(system.Healther).Health(Context(t)))
	kill()
	wantGone(t, n, objects[0].Ref)
}

// wantProvided compares what a node says of an object with what it gives.
func wantProvided(t *testing.T, n system.Getter, o system.Object) {
	var got bytes.Buffer
	must(t, "get", n.Get(Context(t), o.Ref, &got))
	if o.Size >= 0 && int64(got.Len()) != o.Size {
		t.Errorf("%d bytes, said to be %d", got.Len(), o.Size)
	}
	payload := got.Bytes()
	if o.Payload > 0 {
		payload = payload[:o.Payload]
	}
	if sum := sha256.Sum256(payload); o.SHA256 != "" && o.SHA256 != hex.EncodeToString(sum[:]) {
		t.Error("not the content that its sha256 says")
	}
	if r, ok := n.(system.Ranger); ok && !o.NoRange && got.Len() > 2000 {
		wantRanges(t, r, o.Ref, got.Bytes())
	}
	target, err := n.(system.HTTPServer).Target(o.Ref)
	must(t, "target", err)
	if body := Fetch(t, target); !bytes.Equal(body, got.Bytes()) {
		t.Errorf("GET %s: %d bytes that differ from the %d of a get", target.URL, len(body), got.Len())
	}
}
