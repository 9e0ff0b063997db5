package fanout

import (
	"context"
	"encoding/json"
	"fmt"
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
	opt := d.Options
	if n, err := opt.Int("upload_limit"); err != nil || n < 0 || n > 0 && n < slice {
		return nil, fmt.Errorf("fanout: option \"upload_limit\" is 0 or at least 64 KiB, not %q", opt["upload_limit"])
	}
	identity := map[string]string{
		"version": runtime.Version(), "server": "net/http", "transport": "TCP, HTTP/1.1",
		"discovery": "none: seeders are named", "upload_limit": opt["upload_limit"],
	}
	kind := &member.Kind{Name: name, Ref: checkRef, Peer: member.IPPort, Leaf: true,
		RefOf: func(said json.RawMessage) (string, error) {
			var m manifest
			err := json.Unmarshal(said, &m)
			return m.ref(), err
		}}
	return kind.Cluster(ctx, d, identity, "--upload_limit="+opt["upload_limit"])
}
