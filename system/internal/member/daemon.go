package member

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Swarm describes the nodes of one swarm.
type Swarm struct {
	Name string                 // of the system
	Ref  func(system.Ref) error // validates a ref
	Env  []string               // additional environment of the processes: KEY=VALUE
	// Address returns the address by which peers reach a node that listens at IP:PORT; nil: the
	// same.
	Address func(listen string) (string, error)

	// Command returns the command of an external program, which serves the control API at Control;
	// nil: `plimsoll node NAME`. It also creates the files that the program needs.
	Command func(ctx context.Context, n *Daemon) (testbed.Command, error)

	// Leaf is set if nodes do not pass on fetched content: of the given peers, a leecher asks only
	// those that have published the content, if there are any.
	Leaf bool

	mu        sync.Mutex
	published map[system.Ref]publication
}

// publication is the information that leechers need, like a .torrent file.
type publication struct {
	metadata []byte   // returned by a node
	by       []string // addresses of the nodes that published it
}

// publish records what the node at address returned for ref.
func (k *Swarm) publish(ref system.Ref, said []byte, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.published == nil {
		k.published = map[system.Ref]publication{}
	}
	k.published[ref] = publication{said, Merge(k.published[ref].by, []string{address})}
}

// drop removes a node from the publishers of ref, or of all contents if ref is empty.
func (k *Swarm) drop(ref system.Ref, address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for known, p := range k.published {
		if ref == "" || ref == known {
			p.by = slices.DeleteFunc(p.by, func(a string) bool { return a == address })
			k.published[known] = p
		}
	}
}

// task returns a node's task to fetch ref from the given addresses.
func (k *Swarm) task(ref system.Ref, from []string) (t Task, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, there := k.published[ref]
	if !there {
		return t, fmt.Errorf("%s: %s was published by no node here: %w", k.Name, ref, system.ErrNotFound)
	}
	t = Task{Metadata: p.metadata, From: from}
	if k.Leaf {
		seeders := slices.DeleteFunc(slices.Clone(from), func(a string) bool { return !slices.Contains(p.by, a) })
		if len(seeders) > 0 {
			t.From = seeders
		}
	}
	return t, nil
}

// Task is a node's task to fetch a content.
type Task struct {
	Metadata  []byte   // the information returned by its publisher
	From      []string // addresses of peers
	Published bool     // the content was published on this node, not fetched from peers
}

// Daemon is a member of a swarm: one process that fetches and serves contents, and its data.
type Daemon struct {
	*Controlled
	swarm   *Swarm
	Dir     disk.Dir
	address string

	mu    sync.Mutex
	tasks map[system.Ref]Task // of this process, and of the next one
}

var _ system.Healther = (*Daemon)(nil)

// Cluster starts a node on each host, concurrently. Nodes accept peers at IP:PORT.
func (k *Swarm) Cluster(ctx context.Context, d system.Deployment, identity map[string]string) (system.Cluster, error) {
	return group.Start(ctx, len(d.Hosts), group.Several, identity, func(ctx context.Context, i int) (group.Node, error) {
		h, label := d.Hosts[i], fmt.Sprintf("node-%d", i+1)
		c, err := NewControlled(ctx, d, k.Name, h, label)
		if err != nil {
			return nil, err
		}
		n := &Daemon{Controlled: c, swarm: k, Dir: disk.Of(d, h, label), address: c.Listen, tasks: map[system.Ref]Task{}}
		if k.Address != nil {
			if n.address, err = k.Address(c.Listen); err != nil {
				return nil, err
			}
		}
		if err := n.start(ctx); err != nil {
			return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
		}
		return n, nil
	})
}

func (n *Daemon) start(ctx context.Context) error {
	if n.swarm.Command == nil {
		return n.RunNode(ctx, Config{Control: n.Control, Listen: n.Listen, Dir: n.Dir.Path, Options: n.d.Options},
			n.swarm.Env...)
	}
	c, err := n.swarm.Command(ctx, n)
	if err != nil {
		return err
	}
	c.Dir, c.Ready = n.Dir.Path, n.Ready
	return n.Run(ctx, c)
}

// Address implements system.Member.
func (n *Daemon) Address(context.Context) (string, error) { return n.address, nil }

func (n *Daemon) of(ctx context.Context, method string, ref system.Ref, in, out any) error {
	if err := n.swarm.Ref(ref); err != nil {
		return err
	}
	return n.Call(ctx, method, fetchPath+string(ref), in, out)
}

// Publish implements system.Member.
func (n *Daemon) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.Alive(); err != nil {
		return "", err
	}
	if size < 1 {
		return "", fmt.Errorf("%s: %q has %d bytes: a content has at least one", n.swarm.Name, title, size)
	}
	u := n.URL(publishPath)
	u.RawQuery = url.Values{"title": {disk.FileName(title)}}.Encode()
	answer, err := n.Local.Call(ctx, web.Call{Method: http.MethodPut, URL: u, Header: n.Header, Body: r, Size: size})
	if err != nil {
		return "", err
	}
	var p published
	if err = json.Unmarshal(answer, &p); err != nil {
		return "", fmt.Errorf("%s: publish %q: %w: %w", n.swarm.Name, title, system.ErrAnswer, err)
	}
	n.swarm.publish(p.Ref, p.Metadata, n.address)
	n.keep(p.Ref, Task{Metadata: p.Metadata, Published: true})
	return p.Ref, nil
}

// keep records a task of the process.
func (n *Daemon) keep(ref system.Ref, t Task) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.tasks[ref]
	t.From, t.Published = Merge(before.From, t.From), t.Published || before.Published
	n.tasks[ref] = t
}

// Fetch implements system.Member.
func (n *Daemon) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	t, err := n.swarm.task(ref, from)
	if err != nil {
		return err
	}
	if err = n.of(ctx, http.MethodPost, ref, t, nil); err == nil {
		n.keep(ref, t)
	}
	return err
}

// Progress implements system.Member. Counters start again with the process.
func (n *Daemon) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	err = n.of(ctx, http.MethodGet, ref, nil, &f)
	return f, err
}

// ReadBack implements system.Member with the content on the node's disk.
func (n *Daemon) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := errors.Join(n.swarm.Ref(ref), n.Alive()); err != nil {
		return err
	}
	return n.Local.Get(ctx, system.HTTPTarget{URL: n.URL(filePath + string(ref)), Header: n.Header}, w)
}

// Forget implements system.Member.
func (n *Daemon) Forget(ctx context.Context, ref system.Ref) error {
	if err := n.of(ctx, http.MethodDelete, ref, nil, nil); err != nil {
		return err
	}
	n.swarm.drop(ref, n.address)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.tasks, ref)
	return nil
}

// Restart implements system.Restarter. Addresses stay the same, and so do the tasks if data is
// kept.
func (n *Daemon) Restart(ctx context.Context, keep bool) error {
	err := n.Stop(ctx)
	if err == nil && !keep {
		n.mu.Lock()
		clear(n.tasks)
		n.mu.Unlock()
		n.swarm.drop("", n.address)
		err = n.Dir.Files.RemoveAll(n.Dir.Path)
	}
	if err == nil {
		err = n.start(ctx)
	}
	n.mu.Lock()
	tasks := maps.Clone(n.tasks)
	n.mu.Unlock()
	for ref, t := range tasks {
		if err == nil {
			err = n.of(ctx, http.MethodPost, ref, t, nil)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: restart %s: %w", n.swarm.Name, n.Label, err)
	}
	return nil
}

// CID returns an error if ref is not a CID, for systems whose refs are CIDs.
func CID(name string, ref system.Ref) error {
	if _, err := cid.Decode(string(ref)); err != nil {
		return fmt.Errorf("%s: %q is not a CID (%w): %w", name, ref, err, system.ErrBadRef)
	}
	return nil
}

// Hex returns an error if ref is not the hash of size bytes in hexadecimal digits, for systems whose
// refs are hashes.
func Hex(name string, ref system.Ref, size int) error {
	b, err := hex.DecodeString(string(ref))
	if err != nil || len(b) != size || hex.EncodeToString(b) != string(ref) {
		return fmt.Errorf("%s: %q is not a hash of %d hex digits in lower case: %w", name, ref, 2*size, system.ErrBadRef)
	}
	return nil
}

// Multiaddr returns a TCP address in libp2p's notation.
func Multiaddr(at netip.AddrPort) string {
	family := "ip6"
	if at.Addr().Is4() {
		family = "ip4"
	}
	return fmt.Sprintf("/%s/%s/tcp/%d", family, at.Addr(), at.Port())
}
