package renterd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

const pageSize = 1000

// node is a bucket of a renterd. A ref is a key without its leading slash.
type node struct {
	sia.Renter
	bucket         string
	asked          url.Values    // redundancy of this run's uploads; nil for the node's default
	minimum, total int64         // shards that rebuild a slab, and shards of a completely stored slab
	page           int           // objects per page of a list
	chain          *privateChain // of the daemons of a private network; nil if attached
}

func newNode(a *sia.API, opt system.Options) *node {
	n := &node{bucket: opt["bucket"], page: pageSize}
	n.API, n.Prefix = a, strings.TrimPrefix(opt["prefix"], "/")
	n.Ask = func(ctx context.Context, ref system.Ref) (int64, error) {
		o, err := n.object(ctx, ref)
		return o.Size, err
	}
	return n
}

func (n *node) query() url.Values { return url.Values{"bucket": {n.bucket}} }

// Put implements system.Store. With packing, all or the end of the object may still be in a buffer
// of the node when it returns. renterd silently replaces an object with the same key. The keys of
// this run begin with its mark, so they collide with no others, and Put refuses a name that it has
// already put.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.MayWrite(fmt.Sprintf("put %q", name)); err != nil {
		return "", err
	}
	ref := n.Named(name)
	if _, taken := n.Stored(ref); taken {
		return "", fmt.Errorf("renterd: put %q: there is an object %s already, which a put would replace", name, ref)
	}
	q := n.query()
	maps.Copy(q, n.asked)
	if err := n.API.Upload(ctx, http.MethodPut, "/worker/object/"+string(ref), q, size, r); err != nil {
		return "", fmt.Errorf("renterd: put %q: %w", name, err)
	}
	n.Add(ref, size)
	return ref, nil
}

// Target implements system.HTTPServer.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	key, err := n.Path(ref)
	return n.target(key), err
}

func (n *node) target(key string) system.HTTPTarget {
	return system.HTTPTarget{URL: n.API.URL("/worker/object/"+key, n.query()), Header: n.API.Header.Clone()}
}

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	return n.API.Client.Get(ctx, t, w)
}

// GetRange implements system.Ranger. renterd supports bytes=a-b within the object and answers 400
// to all other forms, so the size must be known first.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.Range(ctx, ref, off, count, func(key string, there int64) error {
		return n.API.Client.GetRange(ctx, n.target(key), off, there, w)
	})
}

// Delete implements system.Deleter, for objects that this node has put.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	return n.Erase(ref, func(key string) error {
		return n.API.Send(ctx, http.MethodDelete, "/worker/object/"+key, n.query(), nil, nil)
	})
}

// List implements system.Lister.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	q := n.query()
	q.Set("limit", strconv.Itoa(n.page))
	for {
		var page objectsAnswer
		if err := n.API.Get(ctx, "/bus/objects/"+n.Prefix+n.Mark, q, &page); err != nil {
			return err
		}
		for _, o := range page.Objects {
			ref := system.Ref(strings.TrimPrefix(o.Key, "/"))
			if err := visit(system.Object{Name: n.Name(ref), Ref: ref, Size: o.Size}); err != nil {
				return err
			}
		}
		if !page.HasMore {
			return nil
		}
		q.Set("marker", page.NextMarker) // with its leading slash, without which the list would end
	}
}

func (n *node) object(ctx context.Context, ref system.Ref) (o object, err error) {
	key, err := n.Path(ref)
	if err == nil {
		err = n.API.Get(ctx, "/bus/object/"+key, n.query(), &o)
	}
	return o, err
}

// Settle implements system.Settler: it waits until every slab of the object has left the node's
// buffers and has all its shards on hosts. With packing, that happens when other objects fill the
// buffer, which may be never. It polls every 5 ms or 2 % of the time waited so far (sia.Poll), so
// it returns late by at most that plus the time of one answer.
func (n *node) Settle(ctx context.Context, ref system.Ref) error {
	return sia.Poll(ctx, name, string(ref)+" is accepted and not durable", func(ctx context.Context) (bool, string,
		error) {
		o, err := n.object(ctx, ref)
		on := o.onHosts(n.total)
		return on >= o.Size, fmt.Sprintf("%d of %d bytes are on hosts; with packing, the rest waits in a buffer of "+
			"the node until more is put", on, o.Size), err
	})
}

// Cool implements system.Cooler. renterd keeps no copy of data on hosts, but serves data in a slab
// buffer from the node's own disk.
func (n *node) Cool(ctx context.Context, ref system.Ref) error {
	o, err := n.object(ctx, ref)
	if err != nil {
		return err
	}
	if on := o.onHosts(1); on < o.Size {
		return fmt.Errorf("renterd: %d of %d bytes of %s lie in a slab buffer of the node: %w", o.Size-on, o.Size, ref,
			system.ErrWarm)
	}
	return nil
}

// Stats implements system.Stats. Absolute is the total size of the sectors of the bucket's objects
// on hosts. `totalUploadedSize` is not used, since it lags by seconds and never decreases. Neither
// includes data in slab buffers.
//
// The node reports totals of whole buckets only, and summing up the slabs of this run's objects
// would take a call for each. A node that writes therefore reports Absolute only while the bucket
// has as many objects as the node has put there. Otherwise it is −1, because data that others store
// meanwhile would count as the cost of this run's objects. Disk, entries and inodes are those of
// the hosts' storage folders, if this run started the hosts.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	bucket := struct {
		Objects int64 `json:"numObjects"`
		Sectors int64 `json:"totalSectorsSize"`
	}{-1, -1}
	if err := n.API.Get(ctx, "/bus/stats/objects", n.query(), &bucket); err != nil {
		return system.Holdings{}, err
	}
	h, err := n.Usage()
	if err != nil {
		return h, err
	}
	h.Objects, h.Absolute = bucket.Objects, bucket.Sectors
	if ours := n.Len(); n.Write && h.Objects != ours {
		h.Objects, h.Absolute = ours, -1
	}
	return h, nil
}

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if n.chain != nil && n.chain.Err() != nil {
		return n.chain.Err()
	}
	return n.Renter.Health(ctx)
}

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	if n.chain != nil {
		n.chain.stop()
	}
	return n.Renter.Stop(ctx)
}

// attach checks in advance for problems that would otherwise appear late or never.
func (n *node) attach(ctx context.Context, packing string, identity map[string]string) error {
	var state struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
		Network string `json:"network"`
	}
	if err := n.API.Get(ctx, "/bus/state", nil, &state); err != nil {
		return err
	}
	identity["version"] = fmt.Sprintf("renterd %s (%s)", state.Version, state.Commit)
	identity["network"] = state.Network
	if err := n.API.Synced(ctx); err != nil {
		return err
	}
	if err := n.bucketIsThere(ctx); err != nil {
		return err
	}
	var settings uploadSettings
	if err := n.API.Get(ctx, settingsPath, nil, &settings); err != nil {
		return err
	}
	if n.asked == nil {
		n.minimum, n.total = settings.Redundancy.Min, settings.Redundancy.Total
	}
	if n.minimum < 1 || n.total < n.minimum {
		return fmt.Errorf("renterd: GET %s of %s reports no redundancy", settingsPath, n.API.Base.Host)
	}
	identity["redundancy"] = fmt.Sprintf("%d of %d shards", n.minimum, n.total)
	identity["connections"] = "the node keeps its sessions with hosts"
	is := map[bool]string{true: "on", false: "off"}[settings.Packing.Enabled]
	identity["packing"] = is
	if packing != "keep" && packing != is {
		return fmt.Errorf("renterd: option `packing` is %s, and packing is %s on %s; change it there (PUT /api%s), "+
			"or the option", packing, is, n.API.Base.Host, settingsPath)
	}
	return nil
}

const settingsPath = "/bus/settings/upload"

// bucketIsThere returns an error if the bucket does not exist. It reads the list of buckets,
// because listing the objects of a missing bucket is answered as if it were empty.
func (n *node) bucketIsThere(ctx context.Context) error {
	var all []bucket
	if err := n.API.Get(ctx, "/bus/buckets", nil, &all); err != nil {
		return err
	}
	if !slices.Contains(all, bucket{n.bucket}) {
		return fmt.Errorf("renterd: %s has no bucket %q (it has %d others); make it (POST /api/bus/buckets), or set "+
			"option `bucket`", n.API.Base.Host, n.bucket, len(all))
	}
	return nil
}
