package sshd

import (
	"bytes"
	"context"
	"fmt"
	"path"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// Health implements system.Healther: the client logs in over a new connection and reads the probe.
func (s *Server) Health(ctx context.Context) error {
	if err := s.Alive(); err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil {
		return fmt.Errorf("%s: health probe: %w", s.System, err)
	}
	return nil
}

func (s *Server) probe(ctx context.Context) error {
	session, err := s.Login.Open(ctx, s.dial)
	if err != nil {
		return err
	}
	defer session.Abort()
	defer context.AfterFunc(ctx, session.Abort)()
	f, err := session.Open(path.Join(s.Path, disk.Probe))
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if _, err := f.WriteTo(&got); err != nil {
		return err
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("got %d other bytes than stored", got.Len())
	}
	return nil
}
