// Package system is the contract between Plimsoll and the storage systems it
// measures. Each system lives in its own directory with the same file names;
// package system/all lists them. Timers and observers sit in the engine, never in
// a system's package, so that all systems are measured alike.
package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/plimsoll-project/plimsoll/internal/option"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// System is a kind of storage system: a [Starter], an [Attacher] or both.
type System interface {
	Info() Info
	// Check says what is missing on this machine to start (or, when opt names
	// an endpoint, to attach to) the system. It changes nothing. Options have their
	// defaults here, in Start and in Attach: callers use the functions [Check] and [Begin].
	Check(ctx context.Context, opt Options) []Problem
}

// Starter is a system that brings up a fresh deployment, ready to serve.
type Starter interface {
	System
	Start(ctx context.Context, d Deployment) (Cluster, error)
}

// Attacher is a system that connects to someone's running nodes. It never writes
// unless the experiment allows it.
type Attacher interface {
	System
	Attach(ctx context.Context, d Deployment) (Cluster, error)
}

// Info describes a system; it is data, so that the list of systems, the file
// format's checks and the documentation come from one place.
type Info struct {
	Name     string   // "nginx"
	Summary  string   // one line
	Modes    []Mode   // how it can be had
	Options  []Option // keys of `with:` in the experiment file
	Can      []string // what its nodes can do: words of [Abilities]
	Install  string   // how to get it when it is missing; empty: built in
	Image    string   // the container image that `plimsoll systems install` takes; empty: none is known
	Embedded bool     // runs as a subcommand of plimsoll
	Fresh    bool     // each of its operations connects anew
	Baseline bool     // a raw baseline: no storage system, just bytes over the same link
	// Outside is what its programs do beyond the network of a run, and no option of theirs prevents: they are
	// started only on hosts with network namespaces, from where nothing leads out. Empty: nothing.
	Outside string
	// Kept is the directory, of the first server host, with the data that a later start goes on with: see [Revive].
	// Empty: a deployment cannot be brought up again.
	Kept string
	// Images are those of further programs that a start needs, by program; option
	// PROGRAM_image names another.
	Images map[string]string
	// NodeMemory is about what one node of a swarm holds while it serves or
	// fetches, bytes: its resident memory without pages of files, so neither those
	// of the program, which all nodes share, nor those of mapped content ("Anonymous"
	// of /proc/PID/smaps_rollup), at its highest, on average over the nodes. Measured
	// with 32 nodes that all know each other; see the system's page. Whether the nodes
	// asked for fit into this machine is judged by it. 0: not known.
	NodeMemory int64 `yaml:"node_memory"`
	// Chains bounds the chains and peers that a system with "follow" can have when
	// it is started.
	Chains ChainLimits
	// Constants are numbers that decide about results and cannot be set.
	Constants []Constant
}

// Mode is how a deployment comes about.
type Mode string

const (
	Start  Mode = "start"
	Attach Mode = "attach"
)

// Option is one key of `with:`.
type Option = option.Option

// Options are the values of `with:`, checked against Info.Options, defaults
// filled in, as canonical strings ("67108864" for a size, "1m0s" for a duration).
type Options map[string]string

// Problem is something that must be mended before a run, with the way to do it.
type Problem struct {
	What    string
	Hint    string
	Options bool // the options are wrong, on every machine and at any time
}

// WrongOptions is the problem that the options of a system cannot be.
func WrongOptions(name string, err error) []Problem {
	if err == nil {
		return nil
	}
	return []Problem{{What: Info{Name: name}.named(err).Error(), Hint: "correct the options of system " + name +
		": `with:` in the experiment file, --with of collect", Options: true}}
}

// Missing is the problem that a program cannot be used; none without an error.
func (i Info) Missing(err error) []Problem {
	if err == nil {
		return nil
	}
	return []Problem{{What: i.named(err).Error(), Hint: i.Install}}
}

// Deployment is what a system gets to start on or attach with.
type Deployment struct {
	Hosts   []testbed.Host // servers; at least one when starting
	Client  testbed.Host   // where requests come from (readiness probes, attach)
	Dir     string         // scratch directory of this deployment, removed by the engine; see DirOf
	Options Options
	Write   bool // the experiment allows writing to an attached system
	// Swarm asks for a [Member] on each host. A system that has no other nodes
	// starts them anyway.
	Swarm bool
	// Follow asks for a [Chains] cluster, with a [Follower] on each host.
	Follow bool
	// Cache is a directory for what is costly to make and the same for all runs, by
	// its parameters: it outlives them. Made by who writes there; empty: none.
	Cache string
	// Run is the same in all sessions of a run whose trials go on where an earlier
	// session ended, and no other run's. A system that marks the names of what it
	// stores among others' objects marks them by it. Empty: each session is for itself.
	Run  string
	Self []string // command prefix that runs plimsoll; empty: this executable
}

// Cluster is a deployment that runs.
type Cluster interface {
	Nodes() []Node
	// Identity is name, version and protocol details for the record.
	Identity() map[string]string
	Stop(ctx context.Context) error
}

// PutsTear is what Identity says under "puts" when the server writes under the
// object's own name: what has come of a put or an update that is cut off stays
// there, and what was there before is lost.
const PutsTear = "in place: what is cut off stays in part"

// Ref names a stored object within its system: a path, a CID, a cap.
type Ref string

// Errors that callers tell apart; they come wrapped, with what was asked of whom.
var (
	ErrNotFound = errors.New("no such object")
	ErrReadOnly = errors.New("the system is read only here")
	// ErrNotAllowed is the ErrReadOnly of what the experiment can permit.
	ErrNotAllowed = fmt.Errorf("%w; `allow: [write]` in the experiment file permits it", ErrReadOnly)

	ErrNoRange = errors.New("the server does not serve ranges")
	ErrLocked  = errors.New("locked")                 // a wallet
	ErrAuth    = errors.New("wrong credentials")      // password, key, token
	ErrQuota   = errors.New("quota or disk full")     // nothing more can be stored
	ErrTooFew  = errors.New("too few servers")        // for the redundancy asked for, or to rebuild the object
	ErrBadRef  = errors.New("malformed reference")    // no cap, CID or key can look like this
	ErrWarm    = errors.New("the object is not cold") // a read would be answered from a cache near the client
	ErrAnswer  = errors.New("the answer is not what it should be")
	ErrHTML    = fmt.Errorf("%w: HTML instead of JSON", ErrAnswer) // something else answers there, or a proxy does
	// no byte came for a limit of the system's own, though the object is there
	ErrStalled = errors.New("stalled")
)

// Node is one node of a cluster: a [Store], a [Member] of a swarm, or a
// [Follower] of a chain. What it can do beside that it says by further interfaces
// (see [Abilities]).
type Node interface {
	// Processes are observed by the engine; empty when the node is remote.
	Processes() []testbed.Process
}

// Getter is a node with objects that clients read.
type Getter interface {
	Node
	// Get writes the whole object to w. An unknown ref is ErrNotFound, soon.
	Get(ctx context.Context, ref Ref, w io.Writer) error
}

// Store is a node that takes objects from clients.
type Store interface {
	Getter
	// Put stores an object as a client does: its bytes cross the client's link.
	// It returns at acceptance, reads r once and never buffers it whole. One that
	// ends in an error leaves what was there by that name, or the whole object:
	// never a part of it, unless Identity says so ([PutsTear]).
	Put(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// Healther is a node that can say whether it still serves: the probe between cells.
type Healther interface {
	Health(ctx context.Context) error
}

// Seeder is a node which takes an object without the bytes crossing a link:
// preparation, never a measurement. Baselines seed their files in the same way,
// because how a file was written decides what reading it costs.
type Seeder interface {
	Seed(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// Seed places an object on n in the quickest way that n has.
func Seed(ctx context.Context, n Store, name string, size int64, r io.Reader) (Ref, error) {
	if s, ok := n.(Seeder); ok {
		return s.Seed(ctx, name, size, r)
	}
	return n.Put(ctx, name, size, r)
}

// Embedded is a system whose server is in this binary: `plimsoll node NAME ARG…`
// calls Serve, which returns when ctx ends.
type Embedded interface {
	System
	Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// Endpointer is a node that is reached at addresses, host:port. When one of them
// is on this machine, the engine observes whoever listens there: an attached
// server is not one of the others that disturb a measurement.
type Endpointer interface {
	Endpoints() []string
}

// Ranger is a node that reads a part of an object. When the object ends before
// off+n, what there is is written and the error wraps io.ErrUnexpectedEOF.
type Ranger interface {
	GetRange(ctx context.Context, ref Ref, off, n int64, w io.Writer) error
}

// Deleter is a node that removes objects that we put there.
type Deleter interface {
	Delete(ctx context.Context, ref Ref) error
}

// Lister is a node that says what is there. List hands over one object after the other and ends with visit's first
// error.
type Lister interface {
	List(ctx context.Context, visit func(Object) error) error
}

// All is the whole list.
func All(ctx context.Context, l Lister) (all []Object, err error) {
	err = l.List(ctx, func(o Object) error {
		all = append(all, o)
		return nil
	})
	return all, err
}

// Object is a stored object.
type Object struct {
	Name    string
	Ref     Ref
	Size    int64  // bytes of the whole as it is served; -1: the system does not tell
	Payload int64  // bytes before the padding that ends it, where ranges belong; 0: no padding
	SHA256  string // of the payload, lower-case hex; empty: the system does not tell
	NoRange bool   // asked for a range, the server sent the whole
	Moved   bool   // its URL redirects to another
}

// Provider is a node with objects that were there before us, and that it need not list: the pieces of an
// attached storage provider, the URLs of the experiment file.
type Provider interface {
	Objects(ctx context.Context) ([]Object, error)
}

// Found are the objects that an attached node had before us.
func Found(ctx context.Context, n Node) ([]Object, error) {
	if p, ok := n.(Provider); ok {
		return p.Objects(ctx)
	}
	if l, ok := n.(Lister); ok {
		return All(ctx, l)
	}
	return nil, nil
}

// HTTPTarget says how an object is fetched over HTTP.
type HTTPTarget struct {
	URL      *url.URL
	Header   http.Header // beyond Host, Range and Accept-Encoding: identity
	CAFile   string      // extra root certificate; empty: the system's roots
	Insecure bool        // do not check the certificate (asked for in the experiment file)
	// Follow redirects, as an endpoint of others may send. The servers that are started
	// here send none.
	Follow bool
	// Encoded is empty when the body is the object's bytes. Else it names what
	// the body is instead ("car", "raw"): its size and content are not the
	// object's, and a copy fetched from the URL is what to compare with.
	Encoded string
}

// HTTPServer is a node whose objects can be fetched over HTTP: what the
// retrieve scenario needs.
type HTTPServer interface {
	Target(ref Ref) (HTTPTarget, error)
}
