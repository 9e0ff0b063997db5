package fanout

import (
	"context"
	"encoding/json"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// System implements system.Embedded.
type System struct{}

var _ system.Healther = (*member.Daemon)(nil)

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{
		"version": runtime.Version(), "server": "net/http", "transport": "TCP, HTTP/1.1",
		"discovery": "none: seeders are named",
	}
	kind := &member.Kind{Name: name, Ref: checkRef, Peer: member.IPPort, Leaf: true,
		RefOf: func(said json.RawMessage) (string, error) {
			var m manifest
			err := json.Unmarshal(said, &m)
			return m.ref(), err
		}}
	return kind.Cluster(ctx, d, identity)
}
