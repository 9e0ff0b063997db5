package testbed

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Want returns the expected properties of the path from one host to another and back,
// after the last Shape. Of real links between machines, anything is accepted.
func (t *Testbed) Want(from, to Host) link.Want {
	if t.opt.Real {
		return link.Want{Any: true}
	}
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.spec.Want(from.Addr().String(), to.Addr().String())
}

// Check measures round trip, rate and (if segments should be lost) loss of the link with
// traffic between the hosts, and compares them with [Testbed.Want]. tol is the share by
// which they may be off; 0 means link.DefaultTolerance. A link that is off is not an error:
// OK is false and Why gives the reason.
func (t *Testbed) Check(ctx context.Context, from, to Host, tol float64) (record.LinkCheck, error) {
	before, running, err := t.EmulatorStats(ctx)
	if err != nil {
		return record.LinkCheck{}, err
	}
	at, stop, err := to.Respond(ctx)
	if err != nil {
		return record.LinkCheck{}, fmt.Errorf("testbed: check the link to %s: %w", to.Name(), err)
	}
	defer stop()
	c, err := from.Measure(ctx, at, t.Want(from, to), tol)
	c.From, c.To, c.Emulator = from.Name(), to.Name(), t.activeEmulator()
	if err != nil {
		return c, fmt.Errorf("testbed: check the link %s → %s: %w", from.Name(), to.Name(), err)
	}
	if running {
		after, _, err := t.EmulatorStats(ctx)
		if err != nil {
			return c, err
		}
		c.Lateness = after.Since(before).Lateness.Quantile(0.99).Seconds()
	}
	return c, nil
}

// EmulatorStats returns the statistics of our emulator since it started, with hosts by
// address; running is false if it emulates no link. An error means that the emulator has
// died or does not answer.
func (t *Testbed) EmulatorStats(ctx context.Context) (sum link.Stats, running bool, err error) {
	all := []member{{call: func(ctx context.Context, _ MeshCall) (MeshAnswer, error) { return t.stats(ctx) }}}
	if t.opt.Mesh {
		t.mesh.mu.Lock()
		all = t.mesh.joined
		t.mesh.mu.Unlock()
	}
	if all == nil {
		return sum, false, errNotJoined
	}
	var answers []MeshAnswer
	for range 2 { // one late or lost answer does not mean that the emulator died
		asking, cancel := context.WithTimeout(ctx, emulatorTimeout)
		answers, err = each(asking, all, func(int) MeshCall { return MeshCall{Stats: true} })
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	for _, a := range answers {
		sum, running = sum.Merge(a.Stats), running || a.Running
	}
	return sum, running, err
}

// stats returns the statistics of this machine's emulator.
func (t *Testbed) stats(ctx context.Context) (a MeshAnswer, err error) {
	t.shape.mu.Lock()
	e := t.shape.own
	a.Running = e != nil && t.shape.active == link.Own
	t.shape.mu.Unlock()
	if a.Running {
		a.Stats, err = e.Stats(ctx)
	}
	return a, err
}

// EmulatorErr is nil while links are emulated as shaped; otherwise it says how the emulator
// ended. No packet passes between hosts then.
func (t *Testbed) EmulatorErr() error {
	_, _, err := t.EmulatorStats(context.Background())
	return err
}

func (t *Testbed) activeEmulator() string {
	switch {
	case t.opt.Real:
		return record.RealLink
	case t.opt.Mesh && t.byKernel():
		return record.KernelMeshLink
	case t.opt.Mesh:
		return record.MeshLink
	}
	t.shape.mu.Lock()
	defer t.shape.mu.Unlock()
	return t.shape.active
}
