// Package static is a file server of the Go standard library in its own process: a baseline that
// needs no installation.
package static

import (
	"context"
	_ "embed"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/fileserver"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "static"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther = (*fileserver.Node)(nil)
	_ system.Seeder   = (*fileserver.Node)(nil)
)

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.Starter: it starts one server on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{"version": runtime.Version(), "server": "net/http", "put": "http"}
	return fileserver.Cluster(ctx, name, d, identity, func(p fileserver.Place) (testbed.Command, error) {
		cmd, err := d.Node(name, member.Argument(config{p.Address, p.Data, p.TLS, d.Options.Bool("h2")}))
		return testbed.Command{Args: cmd}, err
	})
}
