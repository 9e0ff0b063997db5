package nginx

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/fileserver"
)

// The limits are high enough for a burst on a slow link: requests must end by the experiment's
// deadline, never by the server's.
//
//go:embed nginx.conf
var configText string

var config = template.Must(template.New("nginx.conf").Parse(configText))

func writeConfig(ctx context.Context, p fileserver.Place, opt system.Options, workers string, b build) (string, error) {
	if opt.Bool("tls") && !b.ssl {
		return "", fmt.Errorf("nginx: option tls: nginx %s has no TLS module", b.version)
	}
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
