package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
)

// CreatedObjects tracks the objects that a run stores in an attached system, which outlives the
// run, so that they can be removed. For a started system, which is removed as a whole, it
// tracks nothing.
type CreatedObjects struct {
	node system.Node
	mu   sync.Mutex
	came int
	refs map[system.Ref]int // numbered in order of creation; nil: the system was started
	lost int                // failed operations that may have left an object of unknown ref
}

func NewCreatedObjects(use experiment.SystemUse, node system.Node) *CreatedObjects {
	b := &CreatedObjects{node: node}
	if use.Attached() {
		b.refs = map[system.Ref]int{}
	}
	return b
}

// Add notes the object that a put of name has left or may have left. Where refs follow from names
// alone, that of a failed put is known, too.
func (b *CreatedObjects) Add(name string, ref system.Ref) {
	if n, ok := b.node.(system.Namer); ok && ref == "" {
		ref = n.Named(name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, known := b.refs[ref]; {
	case b.refs == nil || known:
	case ref == "":
		b.lost++
	default:
		b.came++
		b.refs[ref] = b.came
	}
}

// Removed notes that an object was removed.
func (b *CreatedObjects) Removed(ref system.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refs, ref)
}

// RemoveOneTimeout limits the removal of one object. After RemoveHangs such timeouts, the server
// is considered gone, and the other objects are not tried.
const (
	RemoveOneTimeout = 30 * time.Second
	RemoveHangs      = 3
)

// Adopt informs a node that an object belongs to the run.
func Adopt(node system.Node, o system.Object) {
	if a, ok := node.(system.Adopter); ok {
		a.Adopt(o)
	}
}

// Remove deletes an object of the run. A missing object is no error.
func Remove(ctx context.Context, node system.Node, o system.Object) error {
	d, ok := node.(system.Deleter)
	if !ok {
		return errors.New("it cannot remove objects")
	}
	Adopt(node, o) // the node may not know it: from another session or a failed put
	ctx, cancel := context.WithTimeout(ctx, RemoveOneTimeout)
	defer cancel()
	if err := d.Delete(ctx, o.Ref); !errors.Is(err, system.ErrNotFound) {
		return err
	}
	return nil
}

// RemoveEach removes objects one after the other until ctx ends or the system hangs, and calls
// gone for each removed one. Its error gives the number of objects that remain, and the first
// reason.
func RemoveEach(ctx context.Context, node system.Node, all iter.Seq[system.Object], gone func(system.Object)) error {
	var tried, stay, hangs int
	var why error
	for o := range all {
		tried++
		begun, err := time.Now(), ctx.Err()
		if err == nil && hangs >= RemoveHangs {
			err = errors.New("not tried after others hung")
		} else if err == nil {
			err = Remove(ctx, node, o)
		}
		if err == nil {
			gone(o)
			continue
		}
		if stay++; time.Since(begun) >= RemoveOneTimeout {
			hangs++
		}
		why = cmp.Or(why, err)
	}
	if stay == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d objects of ours stay: %w", stay, tried, why)
}

// Close deletes the remaining objects until ctx ends, the newest first, so that files go before
// their directory. Its error gives the number of objects that remain, and why. A runner that
// embeds CreatedObjects thereby implements [Closer].
func (b *CreatedObjects) Close(ctx context.Context) error {
	b.mu.Lock()
	lost := b.lost
	refs := slices.SortedFunc(maps.Keys(b.refs), func(x, y system.Ref) int { return b.refs[y] - b.refs[x] })
	b.mu.Unlock()
	var left []system.Object
	for _, ref := range refs {
		left = append(left, system.Object{Ref: ref, Size: -1})
	}
	err := RemoveEach(ctx, b.node, slices.Values(left), func(o system.Object) { b.Removed(o.Ref) })
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d operations that failed may each have left an object whose name is not "+
			"known", lost))
	}
	return err
}

// removeTimeout limits the removal of one trial's objects.
const removeTimeout = time.Minute

// RemoveMade removes a trial's objects, if the node can, so that disks do not fill, and calls
// gone for each removed one. It records an event if objects remain.
func (s *Site) RemoveMade(ctx context.Context, node system.Node, made []system.Object, gone func(system.Object)) {
	_, can := node.(system.Deleter)
	if !can || ctx.Err() != nil && !s.Use.Attached() { // interrupted: the whole deployment will be removed
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if err := RemoveEach(ctx, node, slices.Values(made), gone); err != nil {
		s.Event("note", "objects not removed", s.Use.Name+": "+err.Error(), 0)
	}
}
