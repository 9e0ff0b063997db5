// Package nginx starts nginx as a file server: the raw baseline of the retrieval study, with
// sendfile and no further layers.
package nginx

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"text/template"

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
	_, err := program(ctx, opt)
	return s.Info().Missing(err)
}

// Start implements system.Starter: it starts one nginx on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	build, err := program(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	workers := opt["workers"]
	if workers == "0" {
		workers = "auto"
	}
	identity := map[string]string{
		"version": build.version, "binary": build.path, "workers": workers, "sendfile": "on",
		"put": "webdav",
	}
	return fileserver.Cluster(ctx, name, d, identity, func(p fileserver.Place) (testbed.Command, error) {
		conf, err := writeConfig(ctx, p, opt, workers)
		return testbed.Command{
			// otherwise it first tries the log of the machine's own nginx
			Args: []string{build.path, "-p", p.Root, "-c", conf, "-e", "stderr"},
		}, err
	})
}

// build is an nginx binary's description of itself.
type build struct{ path, version string }

var versionLine = regexp.MustCompile(`nginx version: (\S+)`)

// program finds nginx, which Debian keeps out of the PATH of ordinary users.
func program(ctx context.Context, opt system.Options) (b build, err error) {
	if b.path, err = system.Program(name, opt, "binary", "PLIMSOLL_NGINX", "nginx", "/usr/sbin/nginx",
		"/usr/local/sbin/nginx"); err != nil {
		return b, err
	}
	out, err := system.Output(ctx, b.path, "-V")
	if err != nil {
		return b, fmt.Errorf("nginx: %s -V: %w: %s", b.path, err, strings.TrimSpace(out))
	}
	m := versionLine.FindStringSubmatch(out)
	if m == nil {
		return b, fmt.Errorf("nginx: %s -V gives no version", b.path)
	}
	if !strings.Contains(out, "http_dav_module") {
		return b, fmt.Errorf("nginx: %s has no WebDAV module, so it takes no puts", b.path)
	}
	b.version = m[1]
	return b, nil
}

// The limits are high enough for a burst on a slow link: requests must end by the experiment's
// deadline, never by the server's.
//
//go:embed nginx.conf
var configText string

var config = template.Must(template.New("nginx.conf").Parse(configText))

func writeConfig(ctx context.Context, p fileserver.Place, opt system.Options, workers string) (string, error) {
	if strings.ContainsAny(p.Root, " \t;{}'\"$\\") {
		return "", fmt.Errorf("nginx: the directory %q has characters that its configuration cannot hold", p.Root)
	}
	files := p.Host.Files()
	if err := files.MkdirAll(filepath.Join(p.Root, "tmp"), 0o755); err != nil {
		return "", err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return "", fmt.Errorf("nginx: limit of open files: %w", err)
	}
	open := min(limit.Max, 1<<16)
	data := struct {
		fileserver.Place
		Workers            string
		Files, Connections uint64
		H2                 bool
	}{p, workers, open, open / 2, opt.Bool("h2")}
	path := filepath.Join(p.Root, "nginx.conf")
	var text bytes.Buffer
	if err := config.Execute(&text, data); err != nil {
		return "", err
	}
	return path, files.Write(ctx, path, 0o644, &text)
}
