// Package system is the interface between Plimsoll and the storage systems it measures. Each system
// has its own directory with the same file names; package system/all lists them. Timers and
// observers are in the engine, never in a system's package, so that all systems are measured alike.
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
	// Check reports what is missing on this machine to start the system (or to attach to it, if opt
	// names an endpoint). It changes nothing. Here, in Start and in Attach the options have their
	// defaults filled in: callers use the functions [Check] and [Begin].
	Check(ctx context.Context, opt Options) []Problem
}

// Starter is a system that can start a new deployment, ready to serve.
type Starter interface {
	System
	Start(ctx context.Context, d Deployment) (Cluster, error)
}

// Attacher is a system that can connect to existing nodes. It never writes unless the experiment
// allows it.
type Attacher interface {
	System
	Attach(ctx context.Context, d Deployment) (Cluster, error)
}

// Info describes a system. It is data, so that the list of systems, the checks of the file format
// and the documentation have one source.
type Info struct {
	Name     string   // "nginx"
	Summary  string   // one line
	Modes    []Mode   // supported modes
	Options  []Option // keys of `with:` in the experiment file
	Can      []string // abilities of its nodes: words of [Abilities]
	Install  string   // how to install it if it is missing; empty: built in
	Image    string   // the container image used by `plimsoll systems install`; empty: none known
	Embedded bool     // runs as a subcommand of plimsoll
	Fresh    bool     // each operation opens a new connection
	Baseline bool     // a raw baseline: no storage system, only bytes over the same link
	// ReachesOut describes traffic of its programs beyond the network of a run that no option
	// prevents. Such programs are started only on hosts with network namespaces, which have no way
	// out. Empty: there is none.
	ReachesOut string `yaml:"reaches_out"`
	// Kept is the directory on the first server host with the data that a later start continues
	// with: see [RestartDeployment]. Empty: a deployment cannot be revived.
	Kept string
	// Images are the images of further programs that a start needs, by program; option
	// PROGRAM_image overrides one.
	Images map[string]string
	// NodeMemory is the approximate memory of one swarm node while it serves or fetches, in bytes:
	// the peak of its resident memory without file pages, averaged over the nodes. It excludes the
	// pages of the program, which all nodes share, and of mapped content ("Anonymous" of
	// /proc/PID/smaps_rollup). It was measured with 32 nodes that all know each other; see the
	// system's page. It decides whether the requested nodes fit into this machine. 0: unknown.
	NodeMemory int64 `yaml:"node_memory"`
	// Chains limits the chains and peers of a started system with "follow".
	Chains ChainLimits
	// Constants are numbers that affect results and cannot be configured.
	Constants []Constant
}

// Mode is how a deployment is obtained.
type Mode = string

const (
	Start  Mode = "start"
	Attach Mode = "attach"
)

// Option is one key of `with:`.
type Option = option.Option

// Options are the values of `with:`, checked against Info.Options, defaults
// filled in, as canonical strings ("67108864" for a size, "1m0s" for a duration).
type Options map[string]string

// Problem is something to fix before a run, with a hint on how to fix it.
type Problem struct {
	What    string
	Hint    string
	Options bool // the options are wrong, whatever the machine and the time
}

// WrongOptions returns the problem of invalid options; none if err is nil.
func WrongOptions(name string, err error) []Problem {
	if err == nil {
		return nil
	}
	return []Problem{{What: Info{Name: name}.named(err).Error(), Hint: "correct the options of system " + name +
		": `with:` in the experiment file, --with of collect, the URL of bench", Options: true}}
}

// Missing returns the problem of an unusable program; none if err is nil.
func (i Info) Missing(err error) []Problem {
	if err == nil {
		return nil
	}
	return []Problem{{What: i.named(err).Error(), Hint: i.Install}}
}

// Deployment is the environment in which a system starts or attaches.
type Deployment struct {
	Hosts   []testbed.Host // servers; at least one for a start
	Client  testbed.Host   // the source of requests (readiness probes, attach)
	Dir     string         // scratch directory of this deployment, removed by the engine; see DirOf
	Options Options
	Write   bool // the experiment allows writing to an attached system
	// Swarm requests a [Member] on each host. A system whose nodes are all Members starts them in
	// any case.
	Swarm bool
	// Follow requests a [Chains] cluster, with a [Follower] on each host.
	Follow bool
	// Cache is a directory for data that is costly to make and the same for all runs with the same
	// parameters: it outlives them. The writer creates it; empty: no cache.
	Cache string
	// Run is the same in all sessions of a run whose trials are continued across sessions, and
	// unique to that run. Systems that mark the names of their objects among foreign ones derive
	// the mark from it. Empty: sessions are independent.
	Run  string
	Self []string // command prefix that runs plimsoll; empty: this executable
}

// Cluster is a running deployment.
type Cluster interface {
	Nodes() []Node
	// Identity returns name, version and protocol details for the record.
	Identity() map[string]string
	Stop(ctx context.Context) error
}

// PutsTear is the value of "puts" in Identity if the server writes in place, under the object's own
// name: an interrupted put or update leaves a partial object, and the previous content is lost.
const PutsTear = "in place: what is cut off stays in part"

// Ref names a stored object within its system: a path, a CID, a cap.
type Ref string

// Errors that callers distinguish; they are wrapped with the operation and its target.
var (
	ErrNotFound = errors.New("no such object")
	ErrReadOnly = errors.New("the system is read only here")
	// ErrNotAllowed is the ErrReadOnly that a setting of the experiment can lift.
	ErrNotAllowed = fmt.Errorf("%w; `allow: [write]` in the experiment file permits it", ErrReadOnly)

	ErrNoRange = errors.New("the server does not serve ranges")
	ErrLocked  = errors.New("locked")                 // a wallet
	ErrAuth    = errors.New("wrong credentials")      // password, key, token
	ErrQuota   = errors.New("quota or disk full")     // nothing more can be stored
	ErrTooFew  = errors.New("too few servers")        // for the redundancy asked for, or to rebuild the object
	ErrBadRef  = errors.New("malformed reference")    // cannot be a cap, CID or key
	ErrWarm    = errors.New("the object is not cold") // a read would be answered from a cache near the client
	ErrAnswer  = errors.New("the answer is not what it should be")
	// no byte arrived within the system's own time limit, although the object exists
	ErrStalled = errors.New("stalled")
)

// Node is one node of a cluster: a [Store], a [Member] of a swarm, or a [Follower] of a chain. It
// shows its other abilities by further interfaces (see [Abilities]).
type Node interface {
	// Processes returns the processes that the engine observes; none if the node is remote.
	Processes() []testbed.Process
}

// Getter is a node whose objects clients can read.
type Getter interface {
	Node
	// Get writes the whole object to w. An unknown ref returns ErrNotFound quickly.
	Get(ctx context.Context, ref Ref, w io.Writer) error
}

// Store is a node that accepts objects from clients.
type Store interface {
	Getter
	// Put stores an object as a client does: its bytes cross the client's link. It returns when the
	// object is accepted, reads r once and never buffers the whole object. A Put that fails leaves
	// either the previous object of that name or the whole new one, never a part, unless Identity
	// reports otherwise ([PutsTear]).
	Put(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// Healther is a node that can report whether it still serves; it is probed between cells. ctx limits
// the time for the answer.
type Healther interface {
	Health(ctx context.Context) error
}

// Seeder is a node that can store an object without its bytes crossing a link: for preparation,
// never for a measurement. Baselines seed their files in the same way, because how a file was
// written affects the cost of reading it.
type Seeder interface {
	Seed(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
}

// Seed stores an object on n in the fastest available way.
func Seed(ctx context.Context, n Store, name string, size int64, r io.Reader) (Ref, error) {
	if s, ok := n.(Seeder); ok {
		return s.Seed(ctx, name, size, r)
	}
	return n.Put(ctx, name, size, r)
}

// Embedded is a system whose server is part of this binary: `plimsoll node NAME ARG…` calls Serve,
// which returns when ctx ends.
type Embedded interface {
	System
	Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

// Endpointer is a node reached at addresses, host:port. If one of them is on this machine, the
// engine observes the process that listens there, so that an attached server is not counted among
// the other processes that disturb a measurement.
type Endpointer interface {
	Endpoints() []string
}

// Ranger is a node that can read a part of an object. If the object ends before off+n, the existing
// part is written and the error wraps io.ErrUnexpectedEOF.
type Ranger interface {
	GetRange(ctx context.Context, ref Ref, off, n int64, w io.Writer) error
}

// Deleter is a node that can remove objects that Plimsoll put there.
type Deleter interface {
	Delete(ctx context.Context, ref Ref) error
}

// Lister is a node that can list its objects. List calls visit for each object and stops at visit's
// first error.
type Lister interface {
	List(ctx context.Context, visit func(Object) error) error
}

// All returns the whole list.
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
	Size    int64  // bytes of the whole object as served; -1: not reported by the system
	Payload int64  // bytes before the trailing padding, to which ranges are restricted; 0: no padding
	SHA256  string // of the payload, lower-case hex; empty: not reported by the system
	NoRange bool   // the server answers a range request with the whole object
	Moved   bool   // its URL redirects to another
}

// Provider is a node with existing objects that it need not be able to list: the pieces of an
// attached storage provider, the URLs of the experiment file.
type Provider interface {
	Objects(ctx context.Context) ([]Object, error)
}

// Found returns the objects that an attached node had before the run.
func Found(ctx context.Context, n Node) ([]Object, error) {
	if p, ok := n.(Provider); ok {
		return p.Objects(ctx)
	}
	if l, ok := n.(Lister); ok {
		return All(ctx, l)
	}
	return nil, nil
}

// HTTPTarget describes how to fetch an object over HTTP.
type HTTPTarget struct {
	URL      *url.URL
	Header   http.Header // in addition to Host, Range and Accept-Encoding: identity
	CAFile   string      // root certificates besides those of the system
	Insecure bool        // do not verify the certificate (requested in the experiment file)
	// Encoded is empty if the body is the object's content. Otherwise it names the encoding of the
	// body ("car", "raw"): size and content of the body are not those of the object, and a copy
	// fetched from the URL is the reference for comparisons.
	Encoded string
}

// HTTPServer is a node whose objects can be fetched over HTTP, as the retrieve scenario needs.
type HTTPServer interface {
	Target(ref Ref) (HTTPTarget, error)
}
