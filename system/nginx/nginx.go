// Package nginx starts nginx as a file server: the raw baseline of the retrieval study, with
// sendfile and no further layers.
package nginx

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/fileserver"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "nginx"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	bin, err := program(opt)
	if err == nil {
		_, err = inspect(ctx, bin)
	}
	return s.Info().Missing(err)
}

// Start implements system.Starter: it starts one nginx on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	bin, err := program(opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	build, err := inspect(ctx, bin)
	if err != nil {
		return nil, err
	}
	workers := opt["workers"]
	if workers == "0" {
		workers = "auto"
	}
	identity := map[string]string{
		"version": build.version, "binary": bin, "workers": workers, "sendfile": "on",
		"put": "webdav",
	}
	return fileserver.Cluster(ctx, name, d, identity, func(p fileserver.Place) (testbed.Command, error) {
		conf, err := writeConfig(ctx, p, opt, workers, build)
		return testbed.Command{
			// otherwise it first tries the log of the machine's own nginx
			Args: []string{bin, "-p", p.Root, "-c", conf, "-e", "stderr"},
		}, err
	})
}

// program finds nginx, which Debian keeps out of the PATH of ordinary users.
func program(opt system.Options) (string, error) {
	return system.Program(name, opt, "binary", "PLIMSOLL_NGINX", "nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx")
}

// build is an nginx binary's description of itself.
type build struct {
	version string
	ssl     bool
}

var versionLine = regexp.MustCompile(`nginx version: (\S+)`)

func inspect(ctx context.Context, bin string) (build, error) {
	out, err := system.Output(ctx, bin, "-V")
	if err != nil {
		return build{}, fmt.Errorf("nginx: %s -V: %w: %s", bin, err, strings.TrimSpace(out))
	}
	m := versionLine.FindStringSubmatch(out)
	if m == nil {
		return build{}, fmt.Errorf("nginx: %s -V gives no version", bin)
	}
	if !strings.Contains(out, "http_dav_module") {
		return build{}, fmt.Errorf("nginx: %s has no WebDAV module, so it takes no puts", bin)
	}
	return build{version: m[1], ssl: strings.Contains(out, "http_ssl_module")}, nil
}
