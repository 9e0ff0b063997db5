// Package remote runs a plan on other machines: a launcher on the user's machine creates them in a
// [Place], each with an agent, and starts the engine on the first of them, which connects to the
// others. All measurements are made there; the run directory is copied back.
package remote

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Place is a source of machines: a list of machines reached by ssh, or a Kubernetes cluster. Its
// methods end with their context. A run is identified only by its ID, so that another launcher, or
// this one after a crash, finds what the first one created.
type Place interface {
	// Check returns the problems that prevent the place from providing the machines of a new run.
	// It changes nothing, except that it removes the remains of crashed runs and reports that.
	Check(ctx context.Context, want Spec) []engine.Problem
	// Create creates the machines of a run and waits until the agents on them listen. If it fails,
	// the caller calls Delete.
	Create(ctx context.Context, spec Spec) ([]Machine, error)
	// Find returns the machines of a run, in the order of Create, given the first one. A replaced
	// machine is represented by the new one. Find returns [ErrGone] if certainly nothing of the run
	// is left.
	Find(ctx context.Context, run string, first Machine) ([]Machine, error)
	// Exec runs plimsoll with arguments on a machine returned by Create or Find, beside the agent,
	// and transfers its input (nil: none) and output. It returns an error if plimsoll failed, with
	// its standard error, or if the connection broke. Processes that plimsoll starts there in a new
	// session keep running.
	Exec(ctx context.Context, on Machine, args []string, in io.Reader, out io.Writer) error
	// Delete ends and removes everything of a run, even if it was created only partly, and its
	// files on the machines; it returns nil if there is nothing.
	Delete(ctx context.Context, run string) error
}

// Spec is what the launcher requires of a place. Settings of the place itself, such as an image or
// a size of machines, are in its file.
type Spec struct {
	Run      string // ID: 12 lower-case letters and digits, the first a letter
	Machines int
	Emulate  bool // links between machines: each gets a number, and `plimsoll node agent` that number - 1 as --index
	Netem    bool // emulation by each machine's kernel: `plimsoll node agent` gets --emulator netem, and is root
	// Credentials are for the agents, the same for all: `plimsoll node agent` reads them in gob
	// ([agent.Credentials]) from its standard input, or from the file of --credentials.
	Credentials agent.Credentials
	Binary      string // this program, a static executable for Linux
}

// Machine is one machine of a run.
type Machine struct {
	// Name is unique in the run, and stays the same for a machine at the same place in the next
	// run: the host's name in the list, or a pod's name without its random part. Samples and
	// reasons contain it.
	Name  string         `json:"name"`
	ID    string         `json:"id,omitempty"`   // identifies it in its place, if not Name
	Node  string         `json:"node,omitempty"` // what it runs on, if not itself
	Zone  string         `json:"zone,omitempty"`
	Addr  netip.Addr     `json:"address"` // of the machine and its servers, as reached by the others
	Agent netip.AddrPort `json:"agent"`   // address of its agent, for the engine
	Dir   string         `json:"dir"`     // a directory of this run only, with the same path on all machines
	// Number of its host, from 1, if links are emulated; the first machine has 1.
	Number int `json:"number,omitempty"`
}

// Check returns the problems that prevent or impair the run of a plan in a place.
func Check(ctx context.Context, place Place, cfg engine.Config) []engine.Problem {
	return append(engine.Placeable(cfg.Plan, cfg.Systems, cfg.Clients),
		place.Check(ctx, needs(cfg.Plan, cfg.Clients))...)
}

// needs returns what a plan requires of a place.
func needs(plan *experiment.Plan, clients int) Spec {
	return Spec{Machines: engine.MachinesFor(plan, clients), Emulate: engine.EmulatesBetween(plan),
		Netem: engine.ByKernel(plan)}
}

// ErrGone means that nothing of the run is left in its place.
var ErrGone = errors.New("nothing of the run is there any more")
