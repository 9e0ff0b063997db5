// Package s3 stores objects in an attached S3 server, or in versitygw started by Plimsoll on plain
// files.
package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"debug/buildinfo"
	_ "embed"
	"fmt"
	"net/url"
	"os"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "s3"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther = (*node)(nil)
	_ system.Seeder   = (*node)(nil)
	_ system.Namer    = (*node)(nil)
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["endpoint"] == "" {
		_, err := program(ctx, opt)
		return s.Info().Missing(err)
	}
	e, err := endpointOf(opt)
	if err != nil {
		return system.WrongOptions("s3", err)
	}
	return web.Unreachable(ctx, name, []string{web.HostPort(e.url)})
}

// Start implements system.Starter: it starts one versitygw on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	bin, err := program(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	identity := map[string]string{
		"version": version(bin), "binary": bin, "storage": "posix", "keep-alive": "on", "tls": opt["tls"],
		"put": "one PUT up to 5 GiB, then parts of 64 MiB", "retrieval": "presigned GET",
	}
	if opt.Bool("tls") {
		identity["puts"] = system.PutsTear // with TLS the client signs no bodies, and versitygw counts no bytes
	}
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		n, meta, err := startVersity(ctx, d, d.Hosts[i], bin)
		identity["metadata"] = meta
		return n, err
	})
}

// Attach implements system.Attacher.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	e, err := endpointOf(d.Options)
	if err != nil {
		return nil, err
	}
	n, err := connect(e, d.Client, d.Client)
	if err != nil {
		return nil, err
	}
	n.attached, n.mark = true, d.Mark()
	head, err := n.reachable(ctx)
	if err != nil {
		n.close()
		return nil, err
	}
	identity := map[string]string{
		"version":  cmp.Or(head.Get("Server"), "unknown (the server sends no Server header)"),
		"endpoint": e.url.Host, "bucket": e.bucket, "prefix": e.prefix, "region": e.region,
		"put": "one PUT up to 5 GiB, then parts of 64 MiB", "retrieval": "presigned GET",
	}
	if e.anonymous() {
		identity["retrieval"] = "anonymous GET"
	}
	return group.One(identity, n, nil)
}

// endpoint is a bucket on a server, with its credentials.
type endpoint struct {
	url            *url.URL
	bucket, prefix string
	region         string
	access, secret string
	ca             string
	insecure       bool
}

func (e endpoint) anonymous() bool { return e.access == "" }

func endpointOf(opt system.Options) (e endpoint, err error) {
	e = endpoint{
		bucket: opt["bucket"], prefix: opt["prefix"], region: opt["region"],
		access: os.Getenv(opt["access_key"]), secret: os.Getenv(opt["secret_key"]),
		ca: opt["ca"], insecure: opt.Bool("insecure"),
	}
	if e.url, err = web.ParseServer(name, "endpoint", opt["endpoint"], "https://s3.example.org"); err != nil {
		return e, err
	}
	if (e.access == "") != (e.secret == "") {
		return e, fmt.Errorf("s3: of the environment variables %s and %s only one is set", opt["access_key"],
			opt["secret_key"])
	}
	return e, nil
}

// startVersity starts versitygw on plain files. It also returns where object metadata is kept,
// which affects the cost of each operation.
func startVersity(ctx context.Context, d system.Deployment, h testbed.Host, bin string) (_ group.Node, meta string,
	err error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, "", err
	}
	root := d.DirOf(h)
	data, side := disk.Of(d, h, "data"), disk.Of(d, h, "metadata")
	for _, dir := range []disk.Dir{data, side} {
		if err := dir.Files.MkdirAll(dir.Path, 0o755); err != nil {
			return nil, "", err
		}
	}
	e := endpoint{
		url:    &url.URL{Scheme: "http", Host: system.JoinPort(h, port)},
		bucket: d.Options["bucket"], region: d.Options["region"],
		access: "plimsoll", secret: rand.Text(),
	}
	// Without --keep-alive it closes the connection after each answer.
	args := []string{bin, "--port", e.url.Host, "--region", e.region, "--keep-alive", "--quiet"}
	if d.Options.Bool("tls") {
		files, err := selfsigned.Write(ctx, d, h)
		if err != nil {
			return nil, "", err
		}
		args = append(args, "--cert", files.Cert, "--key", files.Key)
		e.url.Scheme, e.ca = "https", files.CA
	}
	args, meta = append(args, "posix"), "extended attributes"
	if !h.Files().SupportsXattrs(data.Path) {
		args, meta = append(args, "--sidecar", side.Path), "files beside the objects (no extended attributes here)"
	}
	n, err := connect(e, d.Client, h)
	if err != nil {
		return nil, "", err
	}
	n.Process = member.Process{System: name, Label: name + "-" + h.Name(), Host: h}
	err = n.Run(ctx, testbed.Command{
		Dir:  root,
		Args: append(args, data.Path),
		Env:  []string{"ROOT_ACCESS_KEY=" + e.access, "ROOT_SECRET_KEY=" + e.secret},
		Ready: func(ctx context.Context) error {
			if err := n.prepare(ctx); err != nil {
				return err
			}
			return n.Serves(ctx)
		},
	})
	if err != nil {
		n.close()
		return nil, "", err
	}
	return started{n, data, side}, meta, nil
}

func program(ctx context.Context, opt system.Options) (bin string, err error) {
	if bin, err = system.Program(name, opt, "binary", "PLIMSOLL_VERSITYGW", "versitygw"); err == nil {
		err = system.CheckProgram(ctx, name, bin, "Version", "--version")
	}
	return bin, err
}

// version returns the module version in the binary: `versitygw --version` knows the version only in
// release builds.
func version(bin string) string {
	info, err := buildinfo.ReadFile(bin)
	if err != nil || info.Main.Version == "" {
		return "versitygw (version unknown)"
	}
	return "versitygw " + info.Main.Version
}
