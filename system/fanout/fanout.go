// Package fanout is the baseline for swarms: nodes that have a content serve it over HTTP; the
// others download it from them and pass nothing on. Each node is a separate process.
package fanout

import (
	"context"
	_ "embed"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const name = "fanout"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System: it requires nothing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{
		"version": runtime.Version(), "server": "net/http", "transport": "TCP, HTTP/1.1",
		"discovery": "none: seeders are named",
	}
	kind := &member.Swarm{Name: name, Ref: checkRef, Leaf: true}
	return kind.Cluster(ctx, d, identity)
}
