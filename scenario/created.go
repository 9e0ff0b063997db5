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

// CreatedObjects are the objects that a run has stored in an attached system: it
// outlives the run, and they are to be removed from it. Of a started system,
// which goes as a whole, nothing is noted.
type CreatedObjects struct {
	node system.Node
	mu   sync.Mutex
	came int
	refs map[system.Ref]int // in the order in which they came; nil: the system was started
	lost int                // operations that failed, and may have left an object
}

func NewCreatedObjects(use experiment.SystemUse, node system.Node) *CreatedObjects {
	b := &CreatedObjects{node: node}
	if use.Attached() {
		b.refs = map[system.Ref]int{}
	}
	return b
}

// Add notes an object that is there, or may be: with the ref of an operation
// that failed after it had one, too. If the ref is
// empty, it is not known what the operation has left.
func (b *CreatedObjects) Add(ref system.Ref) {
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

// AddPut notes what a put of name has left, or may have left: where a system names objects by their
// names alone, that of a put that failed is known, too.
func (b *CreatedObjects) AddPut(name string, ref system.Ref) {
	if n, ok := b.node.(system.Namer); ok && ref == "" {
		ref = n.Named(name)
	}
	b.Add(ref)
}

// Removed notes that an object was removed.
func (b *CreatedObjects) Removed(ref system.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refs, ref)
}

// The removal of one object is given up after RemoveOneTimeout, that of all the
// others after so many hangs: the server is not there any more.
const (
	RemoveOneTimeout = 30 * time.Second
	RemoveHangs      = 3
)

// Adopt informs a node that an object is ours.
func Adopt(node system.Node, o system.Object) {
	if a, ok := node.(system.Adopter); ok {
		a.Adopt(o)
	}
}

// Remove deletes an object of ours; that it is not there is as good.
func Remove(ctx context.Context, node system.Node, o system.Object) error {
	d, ok := node.(system.Deleter)
	if !ok {
		return errors.New("it cannot remove objects")
	}
	Adopt(node, o) // it knows nothing of other sessions, nor of a put that failed
	ctx, cancel := context.WithTimeout(ctx, RemoveOneTimeout)
	defer cancel()
	if err := d.Delete(ctx, o.Ref); !errors.Is(err, system.ErrNotFound) {
		return err
	}
	return nil
}

// RemoveEach removes objects one after the other, until ctx ends or the system hangs, and calls
// gone for each that went. Its error says how many stay, and why the first does.
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

// Close deletes what is left, until ctx ends, the newest first: what is in a directory
// goes before the directory. Its error says how much stays there, and why. It makes a [Closer]
// of a runner.
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

// RemoveTimeout bounds the removal of one trial's objects.
const RemoveTimeout = time.Minute

// RemoveMade removes what a trial has stored, where the node can, so that disks do not fill,
// and calls gone for each that went. What stays is an event.
func (s *Site) RemoveMade(ctx context.Context, node system.Node, made []system.Object, gone func(system.Object)) {
	_, can := node.(system.Deleter)
	if !can || ctx.Err() != nil && !s.Use.Attached() { // the whole deployment goes
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RemoveTimeout)
	defer cancel()
	if err := RemoveEach(ctx, node, slices.Values(made), gone); err != nil {
		s.Event("note", "objects not removed", s.Use.Name+": "+err.Error(), 0)
	}
}
