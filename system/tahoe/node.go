package tahoe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is a client daemon, used through its web API.
type node struct {
	name     string // for messages
	base     *url.URL
	client   *web.Client
	format   string                   // for mutable files and directories: "SDMF", "MDMF"
	readOnly bool                     // attached without permission to write
	entries  []listed.Entry           // objects that existed before
	alive    context.Context          // ends with the first daemon that ends, whose end is the cause; nil when attached
	last     atomic.Pointer[[]string] // accounts of the latest operation on the status page
}

// newNode returns a node without contacting it.
func newNode(title string, base *url.URL, from testbed.Host) *node {
	// a put is answered only when the last share is stored
	return &node{name: title, base: base, client: web.Patient(name, from.Dial)}
}

func (n *node) at(path, query string) system.HTTPTarget {
	return system.HTTPTarget{URL: &url.URL{Scheme: n.base.Scheme, Host: n.base.Host, Path: path, RawQuery: query}}
}

// Target implements system.HTTPServer with the URL of a file's content.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	c, err := parseCap(ref)
	if err != nil {
		return system.HTTPTarget{}, err
	}
	if c.directory() {
		return system.HTTPTarget{}, fmt.Errorf("tahoe: %s is the cap of a directory, not of a file: %w", ref,
			system.ErrBadRef)
	}
	return n.at("/uri/"+string(ref), ""), nil
}

// Put implements system.Store. The name is not stored: the cap follows from the content and the
// client's secret. Up to 55 bytes become a literal cap ("URI:LIT:…"), which contains the object:
// nothing is stored.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, fmt.Sprintf("put %q", name), http.MethodPut, n.at("/uri", ""), size, r, storing)
}

// store makes a request whose answer is a cap. leaves returns the accounts that the request leaves.
func (n *node) store(
	ctx context.Context, doing, method string, t system.HTTPTarget, size int64, r io.Reader,
	leaves func(system.Ref) []string,
) (ref system.Ref, err error) {
	var answer []byte
	if n.readOnly {
		err = system.ErrNotAllowed
	} else if answer, err = n.client.Send(ctx, method, t, size, r); err == nil {
		ref = system.Ref(strings.TrimSpace(string(answer)))
		if _, bad := parseCap(ref); bad != nil {
			err = fmt.Errorf("answered %q instead of a cap", ref)
		}
	}
	if err != nil {
		return "", n.explain(ctx, doing, err)
	}
	n.leaves(leaves(ref)...)
	return ref, nil
}

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.read(ctx, "get", ref, func(t system.HTTPTarget) error { return n.client.Get(ctx, t, w) })
}

// GetRange implements system.Ranger. Tahoe-LAFS fetches whole segments, of 1 MiB unless the object
// is smaller.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	return n.read(ctx, "range", ref, func(t system.HTTPTarget) error {
		return n.client.GetRange(ctx, t, off, count, w)
	})
}

func (n *node) read(ctx context.Context, doing string, ref system.Ref, do func(system.HTTPTarget) error) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	if err := do(t); err != nil {
		return n.explain(ctx, doing, err)
	}
	n.leaves(reading(ref)...)
	return nil
}

// Health implements system.Healther: the client must be connected to a storage node.
func (n *node) Health(ctx context.Context) error {
	all, err := n.servers(ctx)
	if err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if have, _ := connected(all); have == 0 {
		return fmt.Errorf("tahoe: health probe: the client reaches none of the %d storage nodes that it knows: %w",
			len(all), system.ErrTooFew)
	}
	return nil
}

// Processes implements system.Node.
func (n *node) Processes() []testbed.Process { return nil }

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string { return []string{web.HostPort(n.base)} }

// Stop implements group.Node.
func (n *node) Stop(context.Context) error {
	n.client.Close()
	return nil
}

// Objects implements system.Provider with the objects of option `caps`.
func (n *node) Objects(context.Context) (out []system.Object, err error) {
	for _, e := range n.entries {
		out = append(out, e.Object())
	}
	return out, nil
}

// PutMutable implements system.MutablePutter. The client first generates a 2048-bit RSA key, in a
// fraction of a second of CPU time.
func (n *node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, fmt.Sprintf("put mutable %q", name), http.MethodPut, n.at("/uri", "format="+n.format), size, r,
		account(publish))
}

// account returns a function that returns the same kinds of accounts for every ref.
func account(kinds ...string) func(system.Ref) []string {
	return func(system.Ref) []string { return kinds }
}

// Update implements system.Updater by replacing the whole content.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	c, err := parseCap(ref)
	if err == nil && !c.mutable() {
		err = fmt.Errorf("tahoe: %s is not the write cap of a mutable file: %w", ref, system.ErrBadRef)
	}
	if err == nil {
		_, err = n.store(ctx, "update", http.MethodPut, n.at("/uri/"+string(ref), ""), size, r,
			account(mapupdate, publish))
	}
	return err
}

// MakeDirectory implements system.Directory: a directory is a mutable file in the format that the
// option selects. Its name is not stored.
func (n *node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	return n.store(ctx, fmt.Sprintf("make directory %q", name), http.MethodPost,
		n.at("/uri", "t=mkdir&format="+n.format), 0, nil, account(publish))
}

// PutIn implements system.Directory: after the put, the directory is read, changed and written
// back. Bytes that a name in a directory may not contain are escaped.
func (n *node) PutIn(ctx context.Context, dir system.Ref, name string, size int64, r io.Reader) (system.Ref, error) {
	c, err := parseCap(dir)
	if err == nil && !c.directory() {
		err = fmt.Errorf("tahoe: %s is not the cap of a directory: %w", dir, system.ErrBadRef)
	}
	if err != nil {
		return "", err
	}
	at := n.at("/uri/"+string(dir)+"/"+disk.FileName(name), "")
	return n.store(ctx, fmt.Sprintf("put %q into a directory", name), http.MethodPut, at, size, r,
		func(ref system.Ref) []string {
			// The directory is read to look the name up, and again to change it.
			return slices.Concat([]string{mapupdate, retrieve}, storing(ref), []string{mapupdate, retrieve, publish})
		})
}

// checked is the answer to t=check: which shares the storage nodes report to have. For a literal
// cap it contains no numbers.
type checked struct {
	Healthy     bool `json:"healthy"`
	Recoverable bool `json:"recoverable"`
	Good        int  `json:"count-shares-good"`
	Needed      int  `json:"count-shares-needed"`
	Expected    int  `json:"count-shares-expected"`
}

// check asks every storage node for shares of ref.
func (n *node) check(ctx context.Context, ref system.Ref) (checked, error) {
	var answer struct {
		Results checked `json:"results"`
	}
	at := n.at("/uri/"+string(ref), "t=check&output=json").URL
	if err := n.client.JSON(ctx, http.MethodPost, at, nil, nil, &answer); err != nil {
		return checked{}, n.explain(ctx, "check", err)
	}
	return answer.Results, nil
}

// Stat implements system.Stater by asking every storage node for its shares. The size comes from
// the cap; that of mutable files is unknown.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	c, err := parseCap(ref)
	if err != nil {
		return system.Object{}, err
	}
	o := system.Object{Ref: ref, Size: c.size}
	got, err := n.check(ctx, ref)
	switch {
	case err != nil:
		return o, err
	case c.literal() || got.Recoverable:
		return o, nil
	case got.Good == 0:
		return o, n.absent(ctx, fmt.Errorf("tahoe: stat %s: no storage node has a share of it", ref))
	}
	return o, fmt.Errorf("tahoe: stat %s: %d shares are there, %d are needed: %w", ref, got.Good, got.Needed,
		system.ErrTooFew)
}

// probeContent is too long for a literal cap, so that the probe is stored on the storage nodes.
var probeContent = strings.Repeat("it serves ", 10)

// started is a client that Plimsoll started, with its grid.
type started struct {
	*node
	config
	proc  testbed.Process   // the client's
	procs []testbed.Process // those of the storage nodes
	dirs  []disk.Dir        // one for each storage node
	probe system.Ref
}

// Health implements system.Healther: every daemon must run, and every storage node must confirm its
// share of the probe to the client.
func (s *started) Health(ctx context.Context) error {
	if s.alive.Err() != nil {
		return fmt.Errorf("tahoe: health probe: %w", context.Cause(s.alive))
	}
	c, err := s.check(ctx, s.probe)
	if err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if !c.Healthy {
		return fmt.Errorf("tahoe: health probe: %d of %d shares of a stored object are there", c.Good, c.Expected)
	}
	return nil
}

// Processes implements system.Node.
func (s *started) Processes() []testbed.Process {
	return append([]testbed.Process{s.proc}, s.procs...)
}

// Stop implements group.Node. The client stops first.
func (s *started) Stop(ctx context.Context) error {
	s.client.Close()
	return errors.Join(stop(ctx, s.proc), stop(ctx, s.procs...))
}

// Stats implements system.Stats, from the disks of the storage nodes: shares with the headers and
// leases of their containers. An object is a storage index, whose shares are in shares/PR/INDEX/ of
// one or more storage nodes; PR is the first two characters of the index. A killed storage node may
// leave the directory of a share that never arrived.
func (s *started) Stats(context.Context) (system.Holdings, error) {
	var roots []disk.Dir
	for _, dir := range s.dirs {
		roots = append(roots, dir.Sub("storage/shares"))
	}
	h, err := disk.Usage(roots...)
	indexes := map[string]bool{}
	for _, root := range roots {
		err = errors.Join(err, root.Files.Walk(root.Path, func(e testbed.Entry) error {
			if part := strings.Split(e.Path, "/"); len(part) == 3 && part[0] != incoming {
				indexes[part[1]] = true
			}
			return nil
		}))
	}
	if err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	h.Objects = int64(len(indexes))
	return h, nil
}

// incoming is the directory in shares/ for incomplete shares.
const incoming = "incoming"
