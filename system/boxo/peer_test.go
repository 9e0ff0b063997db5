package boxo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// openAlone opens a node in this process, and returns the directory of its blocks.
func openAlone(t *testing.T) (*node, string) {
	t.Helper()
	dir := t.TempDir()
	n, end, err := openNode(t.Context(), make([]byte, 32), "127.0.0.1:0", importer{chunk: 1 << 10}, dir)
	must(t, err)
	t.Cleanup(end)
	return n, filepath.Join(dir, "blocks")
}

func blocksIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	return all
}

// atEnd calls do at the end of r.
func atEnd(r io.Reader, do func()) io.Reader {
	return io.MultiReader(r, readerFunc(func([]byte) (int, error) { do(); return 0, io.EOF }))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPublishReadsNothingBack checks that new blocks are not read: a missing block would be waited
// for.
func TestPublishReadsNothingBack(t *testing.T) {
	n, dir := openAlone(t)
	const size = 9 << 10
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	removed := false
	ref, _, err := n.Publish(ctx, "x", size, atEnd(systemtest.Content("x", size), func() {
		if all := blocksIn(t, dir); len(all) > 0 && !removed {
			removed = os.Remove(all[0]) == nil
		}
	}))
	if err != nil || !removed {
		t.Fatalf("%v; a block was removed: %v", err, removed)
	}
	got, err := n.Progress(ctx, ref)
	want := system.Progress{Size: size, Verified: size, Complete: true}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	// A running fetch ends when the content is published here.
	must(t, n.Forget(ctx, ref))
	must(t, n.Fetch(ctx, ref, member.Task{}))
	if f, err := n.Progress(ctx, ref); err != nil || f.Complete {
		t.Errorf("before it is there: %+v, %v", f, err)
	}
	_, _, err = n.Publish(t.Context(), "x", size, systemtest.Content("x", size))
	if f, err := n.Progress(ctx, ref); err != nil || !f.Complete || f.Verified != size {
		t.Errorf("published while fetched: %+v, %v", f, err)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestPublishThatBreaksOff checks that an interrupted publish keeps existing content.
func TestPublishThatBreaksOff(t *testing.T) {
	n, _ := openAlone(t)
	data := systemtest.Bytes("x", 9<<10)
	ref, _, err := n.Publish(t.Context(), "x", 4<<10, bytes.NewReader(data[:4<<10]))
	must(t, err)
	for what, r := range map[string]io.Reader{
		"broken off": io.MultiReader(bytes.NewReader(data[:6000]), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"short":      bytes.NewReader(data[:len(data)-1]),
		"long":       bytes.NewReader(append(data, 'x')),
	} {
		if _, _, err := n.Publish(t.Context(), "x", int64(len(data)), r); err == nil {
			t.Errorf("%s: it was published", what)
		}
	}
	w := httptest.NewRecorder()
	if err := n.ReadBack(w, httptest.NewRequest("GET", "/", http.NoBody), ref); err != nil ||
		!bytes.Equal(w.Body.Bytes(), data[:4<<10]) {
		t.Errorf("what was there: %d bytes, %v", w.Body.Len(), err)
	}
}
