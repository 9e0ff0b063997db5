package member

import (
	"bytes"
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// Served is a process that serves objects over HTTP. Systems embed it.
type Served struct {
	web.Reader
	Process
	Probe system.Ref // of an object with the content disk.ProbeContent
}

// Serves fetches the probe over a new connection.
func (s *Served) Serves(ctx context.Context) error {
	var got bytes.Buffer
	fresh := s.Reader
	fresh.Client = s.Client.Fresh()
	if err := fresh.Get(ctx, s.Probe, &got); err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("%s: health probe of %s: got %d other bytes than stored", s.System, s.Label, got.Len())
	}
	return nil
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
