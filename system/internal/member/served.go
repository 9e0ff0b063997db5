package member

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// Served is a process that serves objects over HTTP. Systems embed it.
type Served struct {
	web.Reader
	Process
	// Probe returns the location of an object with the content disk.ProbeContent.
	Probe func(ctx context.Context) (system.HTTPTarget, error)
}

// Serves fetches the probe over a new connection.
func (s *Served) Serves(ctx context.Context) error {
	t, err := s.Probe(ctx)
	if err != nil {
		return err
	}
	return s.Client.Probe(ctx, t, disk.ProbeContent)
}

// Health implements system.Healther with a fetch of the probe over a new connection.
func (s *Served) Health(ctx context.Context) error {
	if err := s.Alive(); err != nil {
		return err
	}
	return s.Serves(ctx)
}

// Stop implements group.Node.
func (s *Served) Stop(ctx context.Context) error {
	s.Client.Close()
	return s.Process.Stop(ctx)
}
