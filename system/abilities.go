package system

import (
	"context"
	"io"
	"time"
)

// abilities are the words of Info.Can that follow from the interfaces of a node's type, in display
// order. Info.Can lists them before anything is started, together with the words of the protocol
// (https, h2, car), with "cost" if its operations cost money and with "fresh" if every operation
// opens a new connection; the conformance suite checks that the two agree.
var abilities = []struct {
	word string
	has  func(Node) bool
}{
	{"http", is[HTTPServer]},
	{"put", is[Store]},
	{"range", is[Ranger]},
	{"delete", is[Deleter]},
	{"list", is[Lister]},
	{"stat", is[Stater]},
	{"update", is[Updater]},
	{"directory", is[Directory]},
	{"durable", is[Settler]},
	{"cold", is[Cooler]},
	{"fresh", is[Redialer]},
	{"stats", is[Stats]},
	{"phases", is[Phaser]},
	{"monitor", is[Monitored]},
	{"spread", is[Member]},
	{"restart", is[Restarter]},
	{"follow", is[Follower]},
}

func is[T any](n Node) bool {
	_, ok := n.(T)
	return ok
}

// Abilities returns the words of Info.Can that follow from the type of n.
func Abilities(n Node) []string {
	var words []string
	for _, a := range abilities {
		if a.has(n) {
			words = append(words, a.word)
		}
	}
	return words
}

// Redialer is a node whose client can be made to reconnect: the next operation after Redial starts
// with new connections and sessions. A node that does so for every operation reports it in Identity
// ("connections": "fresh").
type Redialer interface {
	Redial(ctx context.Context) error
}

// Stater is a node that can ask the servers about an object without transferring its content.
type Stater interface {
	Stat(ctx context.Context, ref Ref) (Object, error)
}

// Updater is a node whose objects can be replaced under the same ref: mutable files, overwritten
// keys. Objects stored with [PutMutable] can be updated. Update of a ref without an object may fail
// or create the object.
type Updater interface {
	Update(ctx context.Context, ref Ref, size int64, r io.Reader) error
}

// MutablePutter is an [Updater] whose Put stores objects that cannot be replaced.
type MutablePutter interface {
	PutMutable(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// PutMutable stores an object that can be updated.
func PutMutable(ctx context.Context, n Store, name string, size int64, r io.Reader) (Ref, error) {
	if m, ok := n.(MutablePutter); ok {
		return m.PutMutable(ctx, name, size, r)
	}
	return n.Put(ctx, name, size, r)
}

// Directory is a node whose directories are objects themselves, so that storing an object in a
// directory costs more than storing it alone.
type Directory interface {
	MakeDirectory(ctx context.Context, name string) (Ref, error)
	// PutIn stores an object and adds it to dir.
	PutIn(ctx context.Context, dir Ref, name string, size int64, r io.Reader) (Ref, error)
}

// Settler is a node that accepts objects before they are durable. Settle returns once the object
// has its full redundancy; ctx limits the wait.
type Settler interface {
	Settle(ctx context.Context, ref Ref) error
}

// Cooler is a node that may cache near the client what it stored or read. Cool removes the object
// from the cache and verifies that the next Get crosses the link. Its error wraps ErrWarm if the
// object would still be served from a cache.
type Cooler interface {
	Cool(ctx context.Context, ref Ref) error
}

// Stats is a node that reports what the storage servers of its whole cluster hold.
type Stats interface {
	Stats(ctx context.Context) (Holdings, error)
}

// Holdings are the contents of storage servers. A field that the system does not report is −1.
type Holdings struct {
	Objects  int64 // as the system counts them
	Absolute int64 // bytes sent to or kept by storage nodes: padding, metadata and redundancy included
	Disk     int64 // bytes of disk blocks taken, directories included
	Entries  int64 // directory entries
	Inodes   int64
}

// Phaser is a node whose system records where the time of an operation went. Phases returns the
// record of the latest operation of this node, in the order and terms of the system.
type Phaser interface {
	Phases(ctx context.Context) ([]Phase, error)
}

// Phase is one entry of the record. Phases may overlap, so they need not add up to the total.
type Phase struct {
	Name string
	Took time.Duration
}

// Namer is a node whose Put returns a ref that depends only on the name, so that the outcome of a
// Put can be found without listing all objects.
type Namer interface {
	Named(name string) Ref
}

// Adopter is a node that removes and overwrites only objects that it has put itself. Adopt
// registers an object, by ref and size, that an earlier session of the run or a seemingly failed
// Put left behind.
type Adopter interface {
	Adopt(o Object)
}

// Member is a node of a swarm: a system whose nodes get content from each other. Such a cluster has
// one node on each of Deployment.Hosts, all of the same kind; the experiment decides which node has
// which content.
//
// A node knows only what it is given: no tracker, DHT or local discovery, unless an option of the
// system enables it, and then only inside the cluster.
type Member interface {
	Node
	// Address returns the address at which other nodes of the cluster reach this one.
	Address(ctx context.Context) (string, error)
	// Publish puts content on this node's disk without using a link; when it returns, the node
	// serves the content to the cluster. The same content and name give the same ref on every node,
	// so that there can be several seeders.
	Publish(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
	// Fetch makes the node get the content of ref from the cluster, initially from the nodes at the
	// given addresses. It returns within moments, once the node has accepted the task; Progress
	// reports how far it is. Valid data of ref left on disk by an earlier fetch is used.
	Fetch(ctx context.Context, ref Ref, from []string) error
	// Progress returns the progress of this node with ref. It must be cheap: it is called several
	// times a second, and never walks the data.
	Progress(ctx context.Context, ref Ref) (Progress, error)
	// ReadBack writes the content from this node's own disk or store, for verification. It never
	// waits for peers.
	ReadBack(ctx context.Context, ref Ref, w io.Writer) error
	// Forget removes the data and the task of ref from this node.
	Forget(ctx context.Context, ref Ref) error
}

// Progress is the progress of a node. A value that the system does not report is −1.
type Progress struct {
	Size     int64  // bytes of the content; −1 if the node does not know yet
	Verified int64  // bytes that the node has checked against their hashes
	Complete bool   // the node reports that it has all the content
	Received int64  // payload bytes received for ref, including duplicates
	Sent     int64  // payload bytes sent for ref
	Peers    int    // peers connected for ref, including seeds
	Trouble  string // the node's own description of what prevents progress; empty: nothing
}

// Restarter is a node whose daemon can be started again after it was killed or stopped, with or
// without the data it left.
type Restarter interface {
	// Kill ends the node's processes at once (SIGKILL).
	Kill(ctx context.Context) error
	// Restart starts the processes again under the same address; without keep, with an empty store.
	Restart(ctx context.Context, keep bool) error
}
