package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// runAttached is for systems which read what was there before us.
func runAttached(t *testing.T, s Suite) {
	opt, kill := s.Attach(t)
	attached := s
	attached.Options = opt
	if p := s.System.Check(Context(t), opt); len(p) > 0 {
		t.Fatalf("check: %v", p)
	}
	c := start(t, attached, nil)
	n := c.Nodes()[0].(system.Getter)
	if len(n.Processes()) != 0 {
		t.Error("an attached node has processes")
	}
	p, ok := n.(system.Provider)
	if !ok {
		t.Fatal("an attached node tells no objects")
	}
	objects, err := p.Objects(Context(t))
	if err != nil || len(objects) == 0 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	for _, o := range objects {
		var got bytes.Buffer
		if err := n.Get(Context(t), o.Ref, &got); err != nil {
			t.Errorf("get %s: %v", o.Ref, err)
			continue
		}
		if o.Size >= 0 && int64(got.Len()) != o.Size {
			t.Errorf("%s: %d bytes, said to be %d", o.Ref, got.Len(), o.Size)
		}
		payload := got.Bytes()
		if o.Payload > 0 {
			payload = payload[:o.Payload]
		}
		if sum := sha256.Sum256(payload); o.SHA256 != "" && o.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: not the content that its sha256 says", o.Ref)
		}
		if r, ok := n.(system.Ranger); ok && !o.NoRange && got.Len() > 2000 {
			wantRanges(t, r, o.Ref, got.Bytes())
		}
		target, err := n.(system.HTTPServer).Target(o.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if status, body, _ := Fetch(t, target, ""); status != 200 || !bytes.Equal(body, got.Bytes()) {
			t.Errorf("GET %s: status %d, %d bytes", target.URL, status, len(body))
		}
	}
	testCan(t, attached, c)
	testUnknown(t, attached, n)
	testBadRefs(t, attached, n)
	t.Run("costs", func(t *testing.T) { testCosts(t, n) })
	t.Run("monitor", func(t *testing.T) { testMonitor(t, n) })
	if store, is := n.(system.Store); is {
		if _, err := store.Put(Context(t), "x", 1, strings.NewReader("x")); !errors.Is(err, system.ErrReadOnly) {
			t.Errorf("put: %v, want ErrReadOnly", err)
		}
	}
	ctx, cancel := context.WithCancel(Context(t))
	cancel()
	if err := n.Get(ctx, objects[0].Ref, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("get with a context that ended before: %v", err)
	}
	h := n.(system.Healther)
	if err := h.Health(Context(t)); err != nil {
		t.Errorf("health: %v", err)
	}
	kill()
	wantGone(t, n, objects[0].Ref)
}
