package member

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Embedded is a process of this binary: `plimsoll node NAME --control=ADDRESS …`.
type Embedded struct {
	*Controlled
	d   system.Deployment
	env []string // added to its environment: KEY=VALUE
}

// NewEmbedded has a port for the control API, which is none of taken. It starts nothing.
func NewEmbedded(ctx context.Context, d system.Deployment, name string, h testbed.Host, label string, taken int) (*Embedded, error) {
	c, err := NewControlled(ctx, name, h, label, taken)
	return &Embedded{Controlled: c, d: d}, err
}

// Run starts the process, with args added to --control=ADDRESS, and waits until it
// is ready. What ran before is ended first.
func (e *Embedded) Run(ctx context.Context, args ...string) error {
	command, err := e.d.Node(e.System, append([]string{"--control=" + e.Control}, args...)...)
	if err != nil {
		return err
	}
	return e.Controlled.Run(ctx, testbed.Command{Args: command, Dir: e.d.Dir, Ready: e.Ready, Env: e.env})
}
