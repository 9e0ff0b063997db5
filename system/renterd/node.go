package renterd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const (
	probeTime = 10 * time.Second
	pageSize  = 1000
)

// node is a bucket of a renterd. A ref is a key without its leading slash.
type node struct {
	sia.Objects // nothing but those in Stored is deleted
	api         *api
	bucket      string
	asked       url.Values // redundancy of our uploads, when not the node's
	total       int64      // shards of a slab that is stored in full
	write       bool
	page        int // objects asked for at a time

	mu           sync.Mutex
	settingsBack func(ctx context.Context) error // nil: nothing was changed
}

// provider is a bucket that is read: its objects were there.
type provider struct{ *node }

// Objects implements system.Provider.
func (p provider) Objects(ctx context.Context) ([]system.Object, error) { return p.List(ctx) }

func (n *node) query() url.Values { return url.Values{"bucket": {n.bucket}} }

// Put implements system.Node. With packing the end of the object, or all of it,
// lies in a buffer of the node when it returns. renterd replaces an object of
// the same key without a word: ours begin with a mark of this run, so that they
// are no one else's, and Put refuses one that was put before.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if !n.write {
		return "", fmt.Errorf("renterd: put %q: %w; `allow: [write]` in the experiment file permits it", name, system.ErrReadOnly)
	}
	ref := n.Named(name)
	if _, taken := n.Stored.Size(ref); taken {
		return "", fmt.Errorf("renterd: put %q: there is an object %s already, which a put would replace", name, ref)
	}
	q := n.query()
	for k, v := range n.asked {
		q[k] = v
	}
	header := n.api.header.Clone()
	header.Set("Content-Type", "application/octet-stream")
	_, err := n.api.client.Call(ctx, web.Call{Method: http.MethodPut, URL: n.api.url("worker/object/", string(ref), q), Header: header, Body: r, Size: size})
	if err != nil {
		return "", fmt.Errorf("renterd: put %q: %w", name, explain(err))
	}
	n.Stored.Add(ref, size)
	return ref, nil
}

// Target implements system.HTTPServer.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	key, err := n.Space.Path(ref)
	if err != nil {
		return system.HTTPTarget{}, err
	}
	return system.HTTPTarget{URL: n.api.url("worker/object/", key, n.query()), Header: n.api.header.Clone()}, nil
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.api.client.Get(ctx, t, w)
}

// GetRange implements system.Ranger. renterd serves bytes=a-b within the object
// and answers 400 to all other forms, so the size must be known first.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	size := func() (int64, error) {
		o, err := n.object(ctx, ref)
		return o.Size, err
	}
	return sia.Part(name, ref, off, count, func() (int64, error) { return n.Size(ref, size) }, func(there int64) error {
		return n.api.client.GetRange(ctx, t, off, there, w)
	})
}

// Delete implements system.Deleter, for what this node has put there.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	key, err := n.Space.Path(ref)
	if err != nil {
		return err
	}
	if _, ours := n.Stored.Size(ref); !ours {
		return fmt.Errorf("renterd: delete %s: it is not ours: %w", ref, system.ErrReadOnly)
	}
	if err := n.api.send(ctx, http.MethodDelete, n.api.url("worker/object/", key, n.query()), nil, nil); err != nil {
		return err
	}
	n.Stored.Remove(ref)
	return nil
}

// List implements system.Lister.
func (n *node) List(ctx context.Context) ([]system.Object, error) { return system.ListOf(ctx, n) }

// Walk implements system.Walker.
func (n *node) Walk(ctx context.Context, visit func(system.Object) error) error {
	q := n.query()
	q.Set("limit", strconv.Itoa(n.page))
	for {
		var page objectsAnswer
		if err := n.api.get(ctx, n.api.url("bus/objects/", n.Space.Prefix, q), &page); err != nil {
			return err
		}
		for _, o := range page.Objects {
			ref := system.Ref(strings.TrimPrefix(o.Key, "/"))
			if err := visit(system.Object{Name: n.Space.Name(ref), Ref: ref, Size: o.Size}); err != nil {
				return err
			}
		}
		if !page.HasMore {
			return nil
		}
		if page.NextMarker == "" || page.NextMarker == q.Get("marker") || len(page.Objects) == 0 {
			return fmt.Errorf("renterd: list of bucket %q: more is said to come after %q, and no way to it", n.bucket, page.NextMarker)
		}
		q.Set("marker", page.NextMarker) // with its leading slash: without it the list ends
	}
}

func (n *node) object(ctx context.Context, ref system.Ref) (object, error) {
	key, err := n.Space.Path(ref)
	if err != nil {
		return object{}, err
	}
	o := object{Size: -1}
	if err := n.api.get(ctx, n.api.url("bus/object/", key, n.query()), &o); err != nil {
		return object{}, err
	}
	if o.Size < 0 {
		return object{}, fmt.Errorf("renterd: %s: the answer has no size", ref)
	}
	return o, nil
}

// Stat implements system.Stater. It is the node's own account: hosts are not asked.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o, err := n.object(ctx, ref)
	if err != nil {
		return system.Object{}, err
	}
	return system.Object{Name: n.Space.Name(ref), Ref: ref, Size: o.Size}, nil
}

// Cool implements system.Cooler. renterd keeps no copy of what is on hosts;
// what lies in a slab buffer is served from the node's own disk.
func (n *node) Cool(ctx context.Context, ref system.Ref) error {
	o, err := n.object(ctx, ref)
	if err != nil {
		return err
	}
	if on := o.onHosts(1); on < o.Size {
		return fmt.Errorf("renterd: %d of %d bytes of %s lie in a slab buffer of the node: %w", o.Size-on, o.Size, ref, system.ErrWarm)
	}
	return nil
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return n.api.synced(ctx)
}

func (a *api) synced(ctx context.Context) error {
	var c struct {
		Synced bool  `json:"synced"`
		Height int64 `json:"blockHeight"`
	}
	if err := a.get(ctx, a.url("bus/consensus/state", "", nil), &c); err != nil {
		return err
	}
	if !c.Synced {
		return fmt.Errorf("renterd: %s has not synced its chain (height %d): wait until /api/bus/consensus/state says so", a.base.Host, c.Height)
	}
	return nil
}

// Processes implements system.Node.
func (n *node) Processes() []testbed.Process { return nil }

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string { return []string{web.HostPort(n.api.base)} }

// Stop implements group.Node. It puts back the settings that we have changed.
func (n *node) Stop(ctx context.Context) error {
	n.mu.Lock()
	back := n.settingsBack
	n.settingsBack = nil
	n.mu.Unlock()
	var err error
	if back != nil {
		if err = back(ctx); err != nil {
			err = errors.Join(errors.New("renterd: the node's upload packing could not be put back as it was"), err)
		}
	}
	n.api.client.Close()
	return err
}
