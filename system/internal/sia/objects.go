package sia

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// Objects are those of a renter: what is read, and what this run has stored.
type Objects struct {
	System string // its name begins every error
	Prefix string // all refs begin so; empty: all that the renter has
	// Mark begins, after Prefix, the names of what this run stores (see system.Deployment.Mark); empty: the
	// renter has nothing that is someone else's, or nothing is stored.
	Mark  string
	Write bool // objects may be stored
	// Ask asks the renter for an object's size.
	Ask func(ctx context.Context, ref system.Ref) (int64, error)

	mu    sync.Mutex
	sizes map[system.Ref]int64 // of what was put and not deleted; -1: not known
}

// Named implements system.Namer: the ref of an object which this run stores under a name.
func (o *Objects) Named(name string) system.Ref {
	return system.Ref(o.Prefix + o.Mark + disk.PathName(name))
}

// Name is the name of an object; those that this run has not stored have their
// run's mark in it.
func (o *Objects) Name(ref system.Ref) string {
	return disk.NameOfPath(strings.TrimPrefix(strings.TrimPrefix(string(ref), o.Prefix), o.Mark))
}

// Has reports whether a path is one of the objects'.
func (o *Objects) Has(path string) bool { return strings.HasPrefix(path, o.Prefix) }

// Ours reports whether a path is one that this run may have stored; without a
// mark, all are.
func (o *Objects) Ours(path string) bool { return strings.HasPrefix(path, o.Prefix+o.Mark) }

// Path is ref when it can be a path of the objects. Parts that a server or a
// client would resolve, and so mean another path by it, are ErrBadRef; a path
// elsewhere names nothing of ours: ErrNotFound.
func (o *Objects) Path(ref system.Ref) (string, error) {
	for part := range strings.SplitSeq(string(ref), "/") {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("%s: %q: %w", o.System, ref, system.ErrBadRef)
		}
	}
	if !o.Has(string(ref)) {
		return "", fmt.Errorf("%s: %q does not begin with %q: %w", o.System, ref, o.Prefix, system.ErrNotFound)
	}
	return string(ref), nil
}

// MayWrite is an error when the experiment does not allow what.
func (o *Objects) MayWrite(what string) error {
	if !o.Write {
		return fmt.Errorf("%s: %s: %w; `allow: [write]` in the experiment file permits it",
			o.System, what, system.ErrReadOnly)
	}
	return nil
}

// MayDelete is the path of an object that was put here: no other one is deleted.
func (o *Objects) MayDelete(ref system.Ref) (string, error) {
	path, err := o.Path(ref)
	if _, ours := o.Stored(ref); err == nil && !ours {
		err = fmt.Errorf("%s: delete %s: it is not ours: %w", o.System, ref, system.ErrReadOnly)
	}
	return path, err
}

// Adopt implements system.Adopter.
func (o *Objects) Adopt(found system.Object) { o.Add(found.Ref, found.Size) }

// Add enters an object that was put.
func (o *Objects) Add(ref system.Ref, size int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sizes == nil {
		o.sizes = map[system.Ref]int64{}
	}
	o.sizes[ref] = size
}

// Remove forgets an object.
func (o *Objects) Remove(ref system.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sizes, ref)
}

// Stored is the size of an object that was put here.
func (o *Objects) Stored(ref system.Ref) (size int64, ours bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, ours = o.sizes[ref]
	return size, ours
}

// Len is how many objects were put here.
func (o *Objects) Len() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.sizes))
}

// Stat implements system.Stater. It is the renter's own account: hosts are not asked.
func (o *Objects) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	size, err := o.Ask(ctx, ref)
	return system.Object{Name: o.Name(ref), Ref: ref, Size: size}, err
}

// Costs implements system.Coster: what amounts are in. The amounts are in the calls of a
// poll (system.Monitored).
func (o *Objects) Costs(context.Context) (system.Costs, error) {
	return system.Costs{Currency: "SC", Decimals: Decimals}, nil
}

// Range gets count bytes at off of an object, as system.Ranger says, from a renter
// that refuses what leaves the object: get is asked for the n bytes that are there,
// and not at all for none.
func (o *Objects) Range(
	ctx context.Context, ref system.Ref, off, count int64, get func(path string, n int64) error,
) error {
	path, err := o.Path(ref)
	if err != nil {
		return err
	}
	if off < 0 || count < 0 {
		return fmt.Errorf("%s: range of %d bytes at %d", o.System, count, off)
	}
	total, ours := o.Stored(ref)
	if !ours || total < 0 {
		if total, err = o.Ask(ctx, ref); err != nil {
			return err
		}
	}
	there := min(count, max(total-off, 0))
	if there > 0 {
		if err := get(path, there); err != nil {
			return err
		}
	}
	if there < count {
		return fmt.Errorf("%s: bytes %d-%d of %s: the object has %d bytes: %w",
			o.System, off, off+count-1, ref, total, io.ErrUnexpectedEOF)
	}
	return nil
}
