// Package system is the contract between Plimsoll and the storage systems it
// measures. Each system lives in its own directory with the same file names;
// package systems lists them. Timers and observers sit in the engine, never in
// a system's package, so that all systems are measured alike.
package system

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// System is a kind of storage system.
type System interface {
	Info() Info
	// Check says what is missing on this machine to start (or, when opt names
	// an endpoint, to attach to) the system. It changes nothing.
	Check(ctx context.Context, opt Options) []Problem
	// Start brings up a fresh deployment, ready to serve.
	Start(ctx context.Context, d Deployment) (Cluster, error)
	// Attach connects to someone's running nodes. It never writes unless the
	// experiment allows it.
	Attach(ctx context.Context, d Deployment) (Cluster, error)
}

// Info describes a system; it is data, so that the list of systems, the file
// format's checks and the documentation come from one place.
type Info struct {
	Name     string   // "nginx"
	Summary  string   // one line
	Modes    []Mode   // how it can be had
	Options  []Option // keys of `with:` in the experiment file
	Can      []string // "range", "put", "delete", "list", "cost", "stats", "https", "car", …
	Install  string   // how to get it when it is missing; empty: built in
	Embedded bool     // runs as a subcommand of plimsoll
	Baseline bool     // a raw baseline: no storage system, just bytes over the same link
}

// Mode is how a deployment comes about.
type Mode string

const (
	Start  Mode = "start"
	Attach Mode = "attach"
)

// Option is one key of `with:`.
type Option struct {
	Name     string
	Type     string // "string", "int", "bool", "size", "duration", "enum", "strings"
	Enum     []string
	Default  string
	Required bool
	Secret   bool // never recorded; give the name of an environment variable
	Help     string
}

// Options are the values of `with:`, checked against Info.Options, defaults
// filled in, as canonical strings ("67108864" for a size, "1m0s" for a duration).
type Options map[string]string

// Problem is something that must be mended before a run, with the way to do it.
type Problem struct {
	What string
	Hint string
}

// Deployment is what a system gets to start on or attach with.
type Deployment struct {
	Hosts   []testbed.Host // servers; at least one when starting
	Client  testbed.Host   // where requests come from (readiness probes, attach)
	Dir     string         // scratch directory of this deployment, removed by the engine
	Options Options
	Write   bool // the experiment allows writing to an attached system
}

// Cluster is a deployment that runs.
type Cluster interface {
	Nodes() []Node
	// Identity is name, version and protocol details for the record.
	Identity() map[string]string
	Stop(ctx context.Context) error
}

// Ref names a stored object within its system: a path, a CID, a cap.
type Ref string

// Node is one node of a cluster.
type Node interface {
	// Put stores an object; it returns at acceptance, reads r once and never
	// buffers it whole.
	Put(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
	Get(ctx context.Context, ref Ref, w io.Writer) error
	// Processes are observed by the engine; empty when the node is remote.
	Processes() []*testbed.Process
}

// Healther is a node that can say whether it still serves: the probe between cells.
type Healther interface {
	Health(ctx context.Context) error
}

// Ranger is a node that reads a part of an object.
type Ranger interface {
	GetRange(ctx context.Context, ref Ref, off, n int64, w io.Writer) error
}

// Deleter is a node that removes objects that we put there.
type Deleter interface {
	Delete(ctx context.Context, ref Ref) error
}

// Lister is a node that says what is there.
type Lister interface {
	List(ctx context.Context) ([]Object, error)
}

// Object is a stored object. SHA256 is empty when the system does not tell.
type Object struct {
	Name   string
	Ref    Ref
	Size   int64
	SHA256 string
}

// Provider is a node with objects that were there before us: the pieces of an
// attached storage provider, the URLs of the experiment file.
type Provider interface {
	Objects(ctx context.Context) ([]Object, error)
}

// HTTPTarget says how an object is fetched over HTTP.
type HTTPTarget struct {
	URL      *url.URL
	Header   http.Header // beyond Host, Range and Accept-Encoding: identity
	CAFile   string      // extra root certificate; empty: the system's roots
	Insecure bool        // do not check the certificate (asked for in the experiment file)
}

// HTTPServer is a node whose objects can be fetched over HTTP: what the
// retrieve scenario needs.
type HTTPServer interface {
	Target(ref Ref) (HTTPTarget, error)
}
