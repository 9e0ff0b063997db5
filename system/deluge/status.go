package deluge

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
)

// status is what the daemon says of a torrent.
type status struct {
	have           int64 // bytes of whole pieces that passed their hash
	received, sent int64 // payload since the daemon started
	peers          int64
	seeding        bool // complete, and written
	checking       bool
	state, message string // Deluge's words
}

func (s status) complete() bool { return s.seeding && !s.checking }

func (n *node) status(ctx context.Context, ref system.Ref) (status, error) {
	v, err := n.client.call(ctx, "core.plimsoll_status", string(ref))
	if err != nil {
		return status{}, err
	}
	return parseStatus(v)
}

func parseStatus(v any) (s status, err error) {
	m, ok := v.(map[string]any)
	if !ok {
		return s, fmt.Errorf("the status of a torrent is a %T: %w", v, system.ErrAnswer)
	}
	for key, to := range map[string]*int64{"have": &s.have, "received": &s.received, "sent": &s.sent, "peers": &s.peers} {
		if *to, ok = m[key].(int64); !ok || *to < 0 {
			return s, fmt.Errorf("the status of a torrent has %q %v: %w", key, m[key], system.ErrAnswer)
		}
	}
	if s.seeding, ok = m["seeding"].(bool); !ok {
		return s, fmt.Errorf("the status of a torrent has \"seeding\" %v: %w", m["seeding"], system.ErrAnswer)
	}
	lt := ""
	for key, to := range map[string]*string{"state": &s.state, "message": &s.message, "lt_state": &lt} {
		if *to, ok = m[key].(string); !ok {
			return s, fmt.Errorf("the status of a torrent has %q %v: %w", key, m[key], system.ErrAnswer)
		}
	}
	s.checking = lt == "checking_files" || lt == "checking_resume_data" || lt == "queued_for_checking"
	return s, nil
}
