package tahoe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// probeTimeout bounds a health probe.
const probeTimeout = 10 * time.Second

// probeContent is more than a literal cap holds, so that the probe is on the
// storage nodes.
var probeContent = strings.Repeat("it serves ", 10)

// started is a client that we have started, on a grid of ours.
type started struct {
	*node
	first bool // its processes include the storage nodes, and it stops them
	probe system.Ref
}

// Health implements system.Healther: every daemon runs, and every storage node
// tells the client that it has its share of the probe.
func (s *started) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := errors.Join(ended(s.proc), s.grid.died()); err != nil {
		return fmt.Errorf("tahoe: health probe: %w", err)
	}
	c, err := s.check(ctx, s.probe)
	if err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if !c.Healthy {
		return fmt.Errorf("tahoe: health probe: %d of %d shares of a stored object are there", c.Good, c.Expected)
	}
	return nil
}

// Stats implements system.Stats, from the disks of the storage nodes: shares
// with their containers' headers and leases.
func (s *started) Stats(context.Context) (system.Holdings, error) { return s.grid.holdings() }

// Processes implements system.Node.
func (s *started) Processes() []*testbed.Process {
	all := []*testbed.Process{s.proc}
	if s.first {
		all = append(all, s.grid.procs...)
	}
	return all
}

// Stop implements group.Node.
func (s *started) Stop(ctx context.Context) error {
	s.client.Close()
	err := s.proc.Stop(ctx)
	if s.first {
		err = errors.Join(err, s.grid.stop(ctx))
	}
	return err
}

// holdings walks the directories of shares. An object is a storage index,
// whose shares lie in shares/PR/INDEX/ of one or more storage nodes.
func (g *grid) holdings() (system.Holdings, error) {
	roots := g.shareDirs()
	h, err := disk.Usage(roots...)
	if err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	if h.Objects, err = indexes(roots); err != nil {
		return h, fmt.Errorf("tahoe: %w", err)
	}
	return h, nil
}
