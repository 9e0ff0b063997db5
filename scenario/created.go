package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
)

// CreatedObjects are the objects that a run has stored in an attached system: it
// outlives the run, and they are to be removed from it. Of a started system,
// which goes as a whole, nothing is noted.
type CreatedObjects struct {
	mu   sync.Mutex
	came int
	refs map[system.Ref]int // in the order in which they came
	lost int                // operations that failed, and may have left an object
}

func NewCreatedObjects(use experiment.SystemUse) *CreatedObjects {
	if use.Mode != string(system.Attach) {
		return nil
	}
	return &CreatedObjects{refs: map[system.Ref]int{}}
}

// Add notes an object that is there, or may be: with the ref of an operation
// that failed after it had one, too. If the ref is
// empty, it is not known what the operation has left.
func (b *CreatedObjects) Add(ref system.Ref) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if ref == "" {
		b.lost++
		return
	}
	if _, known := b.refs[ref]; !known {
		b.came++
		b.refs[ref] = b.came
	}
}

// Removed notes that an object was removed.
func (b *CreatedObjects) Removed(ref system.Ref) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refs, ref)
}

// newestFirst: what is in a directory goes before the directory.
func (b *CreatedObjects) newestFirst() []system.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	refs := make([]system.Ref, 0, len(b.refs))
	for ref := range b.refs {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(x, y system.Ref) int { return b.refs[y] - b.refs[x] })
	return refs
}

// The removal of one object is given up after removeOneTimeout, that of all the
// others after so many hangs: the server is not there any more.
const (
	RemoveOneTimeout = 30 * time.Second
	RemoveHangs      = 3
)

// RemoveAll deletes what is left, until ctx ends. Its error says how much stays
// there, and why.
func (b *CreatedObjects) RemoveAll(ctx context.Context, node system.Node) error {
	if b == nil {
		return nil
	}
	err := b.clearKnown(ctx, node)
	if b.lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d operations that failed may each have left an object whose name is not known", b.lost))
	}
	return err
}

func (b *CreatedObjects) clearKnown(ctx context.Context, node system.Node) error {
	refs := b.newestFirst()
	if len(refs) == 0 {
		return nil
	}
	d, ok := node.(system.Deleter)
	if !ok {
		return fmt.Errorf("%d objects of ours stay: it cannot remove objects", len(refs))
	}
	var why error
	stay, hangs := 0, 0
	for i, ref := range refs {
		one, cancel := context.WithTimeout(ctx, RemoveOneTimeout)
		err := d.Delete(one, ref)
		if err != nil && one.Err() != nil {
			hangs++
		}
		cancel()
		if err == nil || errors.Is(err, system.ErrNotFound) {
			b.Removed(ref)
			continue
		}
		stay++
		if why == nil {
			why = err
		}
		if ctx.Err() != nil || hangs >= RemoveHangs {
			stay += len(refs) - i - 1
			break
		}
	}
	if stay > 0 {
		return fmt.Errorf("%d of %d objects of ours stay: %w", stay, len(refs), why)
	}
	return nil
}

// removeTimeout bounds the removal of one trial's objects.
const RemoveTimeout = time.Minute
