package retrieve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/commp"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

const (
	copyMost   = 256 << 20 // of an object of others, where cells fetch only ranges
	windowsMax = 8
)

// place restricts the ranges of an object to windows, so that a reference does not need
// all of it. Together they have half of most, since each is fetched twice; one holds two
// of the largest ranges where that allows it. A smaller object keeps its full copy.
func (o *object) place(seed uint64, largest, most int64) {
	span := o.size
	if o.payload > 0 {
		span = o.payload
	}
	count := min(max(most/2/(2*largest), 1), windowsMax)
	window := max(most/2/count, largest)
	if o.size <= most || 2*count*window >= span {
		return
	}
	// One window in each part of the object, the first at its start.
	o.window = window
	each := span / count
	for i := range count {
		at := i * each
		if i > 0 {
			at += int64(workload.Mix(seed, uint64(i)) % uint64(each-window+1))
		}
		o.windows = append(o.windows, at)
	}
}

// part is a range of an object of so many bytes.
type part struct{ off, length, of int64 }

// windowCopy fetches the windows of an object into a file of the object's size that has holes
// between them. Blocks of a CAR are checked by their hashes. Of anything else each window is
// fetched twice, by requests that begin elsewhere: it can tell that a server contradicts
// itself, not that it always sends the same wrong bytes.
func (r *runner) windowCopy(ctx context.Context, o *object, target system.HTTPTarget, largest int64) error {
	fail := func(err error) error {
		return fmt.Errorf("%s: reference of %s: %w", r.site.Use.Name, o.name, err)
	}
	what := fmt.Sprintf("%d windows of %d bytes, of %d bytes", len(o.windows), o.window, o.size)
	r.site.Say(fmt.Sprintf("%s: fetching a reference of %s: %s", r.site.Use.Name, o.name, what))
	begun := time.Now()
	o.reference = r.referencePath()
	f, err := os.Create(o.reference)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	if err := f.Truncate(o.size); err != nil {
		return fail(err)
	}
	for _, at := range o.windows {
		if _, err := r.fetch(ctx, target, &part{at, o.window, o.size}, io.NewOffsetWriter(f, at)); err != nil {
			return fail(err)
		}
	}
	blocks, why, err := o.checkBlocks(f, largest)
	if err != nil {
		return fail(err)
	}
	o.checks = noteBlocks
	how := fmt.Sprintf("%d blocks of the CAR agree with their CIDs, ranges are drawn from %d bytes of each window", blocks, o.window)
	if why != "" {
		o.checks, how = noteConsistent, "each fetched twice: "+why
		if err := r.fetchAgain(ctx, o, target, f); err != nil {
			return fail(err)
		}
	}
	if _, isPiece := commp.Parse(target.URL.Path); isPiece {
		how += "; its piece commitment (CommP) can be checked on the whole piece only"
	}
	r.site.Event("phase", "reference windows", fmt.Sprintf("%s: %s, %s: %s", r.site.Use.Name, o.name, what, how), time.Since(begun))
	return f.Close()
}

// fetchAgain compares the windows with a second answer.
func (r *runner) fetchAgain(ctx context.Context, o *object, target system.HTTPTarget, f *os.File) error {
	for _, at := range o.windows {
		// Not half of it, so that these requests are aligned to nothing.
		cut := o.window/3 + 1
		for _, p := range []part{{at + cut, o.window - cut, o.size}, {at, cut, o.size}} {
			if p.length == 0 {
				continue
			}
			if _, err := r.fetch(ctx, target, &p, &same{f: f, at: p.off}); err != nil {
				return err
			}
		}
	}
	return nil
}

// same is a writer that fails at bytes that differ from those of a file.
type same struct {
	f   *os.File
	at  int64
	buf []byte
}

func (s *same) Write(p []byte) (int, error) {
	s.buf = append(s.buf[:0], p...)
	if _, err := s.f.ReadAt(s.buf, s.at); err != nil {
		return 0, err
	}
	if !bytes.Equal(s.buf, p) {
		return 0, wrongBytes("two answers differ between the bytes %d and %d", s.at, s.at+int64(len(p)))
	}
	s.at += int64(len(p))
	return len(p), nil
}

// Notes of trials that compare with what the server sent before.
const (
	noteCommP      = "content: verified against a full copy whose piece commitment (CommP) was checked"
	noteBlocks     = "content: verified against blocks of a CAR whose hashes were checked"
	noteFullCopy   = "content: verified against a full copy, fetched before anything was measured"
	noteConsistent = "content: ranges verified for consistency only (each fetched twice before, no full copy)"
	noteWindows    = "ranges are drawn from windows of the large objects, so that no full copy is needed"
)

// verifiedBy says what answers were compared with, where it came from the same server.
func verifiedBy(set []object, receive string) (notes []string) {
	note := func(n string, of bool) {
		if of && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	for _, o := range set {
		note(o.checks, o.checks != "" && receive != "drop")
	}
	for _, o := range set {
		note(noteWindows, o.windows != nil)
	}
	return notes
}
