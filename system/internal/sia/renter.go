package sia

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// Renter is the node of a renter, with the objects to read and those that this run has stored.
type Renter struct {
	Network        // the daemons that were started for it
	API     *API   // of the renter itself
	Prefix  string // all refs begin with it; if empty, they cover all that the renter has
	// Mark follows Prefix in the names of what this run stores (see system.Deployment.Mark). It is
	// empty if nothing on the renter belongs to others or nothing is stored.
	Mark  string
	Write bool // whether objects may be stored
	// Ask returns an object's size from the renter.
	Ask func(ctx context.Context, ref system.Ref) (int64, error)

	sizes sync.Map // of objects put and not deleted, by system.Ref; -1 if unknown
}

// Endpoints implements system.Endpointer.
func (r *Renter) Endpoints() []string { return []string{web.HostPort(r.API.Base)} }

// Health implements system.Healther.
func (r *Renter) Health(ctx context.Context) error {
	if err := r.Alive(); err != nil {
		return err
	}
	return r.API.Synced(ctx)
}

// Stop implements group.Node.
func (r *Renter) Stop(ctx context.Context) error {
	r.API.Close()
	return r.Network.Stop(ctx)
}

// Named implements system.Namer. It returns the ref of an object that this run stores under a name.
func (r *Renter) Named(name string) system.Ref {
	return system.Ref(r.Prefix + r.Mark + disk.PathName(name))
}

// Name returns the name of an object. For objects of other runs, it includes their mark.
func (r *Renter) Name(ref system.Ref) string {
	return disk.NameOfPath(strings.TrimPrefix(strings.TrimPrefix(string(ref), r.Prefix), r.Mark))
}

// Ours reports whether a path is one that this run may have stored. Without a mark, all paths below
// the prefix are.
func (r *Renter) Ours(path string) bool { return strings.HasPrefix(path, r.Prefix+r.Mark) }

// Path returns ref as a path if it is a valid path of an object. It returns ErrBadRef if a server
// or client would resolve parts of it, and thus access another path, and ErrNotFound if it does not
// begin with the prefix.
func (r *Renter) Path(ref system.Ref) (string, error) {
	for part := range strings.SplitSeq(string(ref), "/") {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("%s: %q: %w", r.API.System, ref, system.ErrBadRef)
		}
	}
	if !strings.HasPrefix(string(ref), r.Prefix) {
		return "", fmt.Errorf("%s: %q does not begin with %q: %w", r.API.System, ref, r.Prefix, system.ErrNotFound)
	}
	return string(ref), nil
}

// MayWrite returns an error unless the experiment allows writes; what names the operation.
func (r *Renter) MayWrite(what string) error {
	if !r.Write {
		return fmt.Errorf("%s: %s: %w", r.API.System, what, system.ErrNotAllowed)
	}
	return nil
}

// Erase calls remove with the path of an object that was put here, and refuses to delete any
// others.
func (r *Renter) Erase(ref system.Ref, remove func(path string) error) error {
	path, err := r.Path(ref)
	if err != nil {
		return err
	}
	if _, ours := r.Stored(ref); !ours {
		return fmt.Errorf("%s: delete %s: it is not ours: %w", r.API.System, ref, system.ErrReadOnly)
	}
	if err = remove(path); err == nil {
		r.sizes.Delete(ref)
	}
	return err
}

// Adopt implements system.Adopter.
func (r *Renter) Adopt(found system.Object) { r.Add(found.Ref, found.Size) }

// Add records that an object was put.
func (r *Renter) Add(ref system.Ref, size int64) { r.sizes.Store(ref, size) }

// Stored returns the size of an object that was put here.
func (r *Renter) Stored(ref system.Ref) (size int64, ours bool) {
	v, ours := r.sizes.Load(ref)
	size, _ = v.(int64)
	return size, ours
}

// Len returns how many objects were put here.
func (r *Renter) Len() (n int64) {
	r.sizes.Range(func(any, any) bool { n++; return true })
	return n
}

// Stat implements system.Stater. It returns the renter's own data, without contacting hosts.
func (r *Renter) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	size, err := r.Ask(ctx, ref)
	return system.Object{Name: r.Name(ref), Ref: ref, Size: size}, err
}

// Range implements system.Ranger for a renter that refuses ranges beyond the end of an object: it
// calls get for the n of the count bytes at off that exist, and not at all if there are none.
func (r *Renter) Range(
	ctx context.Context, ref system.Ref, off, count int64, get func(path string, n int64) error,
) error {
	path, err := r.Path(ref)
	if err != nil {
		return err
	}
	if off < 0 || count < 0 {
		return fmt.Errorf("%s: range of %d bytes at %d", r.API.System, count, off)
	}
	total, ours := r.Stored(ref)
	if !ours || total < 0 {
		if total, err = r.Ask(ctx, ref); err != nil {
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
			r.API.System, off, off+count-1, ref, total, io.ErrUnexpectedEOF)
	}
	return nil
}
