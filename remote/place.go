// Package remote runs a plan on machines elsewhere: a launcher on the user's machine makes
// them in a [Place], each with an agent, and starts the engine on the first of them, from
// where it reaches the others. Whatever measures is there; the run directory comes back here.
package remote

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Place is where machines come from: a list of those reached by ssh, a Kubernetes cluster.
// Its methods end with their context. A run is known by its ID alone, so that another
// launcher, or this one after a crash, finds what the first has made.
type Place interface {
	// Check says what keeps the place from giving the machines of a run that is not made yet. It changes
	// nothing, but removes what dead runs left there, and says so.
	Check(ctx context.Context, want Spec) []engine.Problem
	// Create makes the machines of a run and waits until the agents on them listen. When it
	// fails, the caller calls Delete.
	Create(ctx context.Context, spec Spec) ([]Machine, error)
	// Find is the machines of a run, in the order of Create, of which this was the first;
	// [ErrGone]: that has nothing of the run any more, which is sure. Of a machine that was
	// replaced it is the new one.
	Find(ctx context.Context, run string, first Machine) ([]Machine, error)
	// Exec runs plimsoll with arguments on a machine that Create or Find gave, beside the agent,
	// and carries its input (nil: none) and output. Its error is that plimsoll ended badly, with what it wrote
	// to its standard error, or that the connection did not last.
	// What plimsoll starts there in a session of its own lives on.
	Exec(ctx context.Context, on Machine, args []string, in io.Reader, out io.Writer) error
	// Delete ends and removes all of a run, also of one that was made by half, and what it
	// kept on the machines; nil when there is nothing.
	Delete(ctx context.Context, run string) error
}

// Spec is what the launcher wants of a place. What is the place's own, such as an image or
// a size of machines, is in its file.
type Spec struct {
	Run      string // ID: 12 lower-case letters and digits, the first a letter
	Machines int
	Emulate  bool // links between them: each gets a number, and `plimsoll node agent` that less 1 as --index
	Netem    bool // by each machine's kernel: `plimsoll node agent` gets --emulator netem, and is root
	// Credentials are those of the agents, one for all: `plimsoll node agent` reads them in gob
	// ([agent.Credentials]) from its standard input, or from the file of --credentials.
	Credentials agent.Credentials
	Binary      string // this program, a static executable for Linux
}

// Machine is one of a run's.
type Machine struct {
	// Name is unique in the run, and the same in the next one for a machine at the same place:
	// the host's in the list, or a pod's without what is random. Samples and reasons have it.
	Name  string         `json:"name"`
	ID    string         `json:"id,omitempty"`   // by which its place finds it, if that is something else
	Node  string         `json:"node,omitempty"` // what it runs on, if that is something else
	Zone  string         `json:"zone,omitempty"`
	Addr  netip.Addr     `json:"address"` // under which the others reach it, and its servers
	Agent netip.AddrPort `json:"agent"`   // where its agent listens for the engine
	Dir   string         `json:"dir"`     // a directory of this run alone, of the same path on all
	// Number, from 1, of its host where links are emulated; the first machine has 1.
	Number int `json:"number,omitempty"`
}

// Check is what keeps the plan of a run from a place, or would make it worse there.
func Check(ctx context.Context, place Place, cfg engine.Config) []engine.Problem {
	return append(engine.Placeable(cfg.Plan, cfg.Systems, cfg.Clients),
		place.Check(ctx, needs(cfg.Plan, cfg.Clients))...)
}

// needs is what a plan wants of a place.
func needs(plan *experiment.Plan, clients int) Spec {
	return Spec{Machines: engine.MachinesFor(plan, clients), Emulate: engine.EmulatesBetween(plan),
		Netem: engine.ByKernel(plan)}
}

// ErrGone: nothing of the run is left in its place.
var ErrGone = errors.New("nothing of the run is there any more")

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
