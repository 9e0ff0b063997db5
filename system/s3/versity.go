package s3

import (
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/testbed"
)

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
	if !h.Files().Attributes(data.Path) {
		args, meta = append(args, "--sidecar", side.Path), "files beside the objects (no extended attributes here)"
	}
	n, err := connect(e, d.Client, h)
	if err != nil {
		return nil, "", err
	}
	prepared := false
	n.Process = member.Process{System: name, Label: name + "-" + h.Name(), Host: h}
	err = n.Run(ctx, testbed.Command{
		Dir:  root,
		Args: append(args, data.Path),
		Env:  []string{"ROOT_ACCESS_KEY=" + e.access, "ROOT_SECRET_KEY=" + e.secret},
		Ready: func(ctx context.Context) error {
			if !prepared {
				if err := n.prepare(ctx); err != nil {
					return err
				}
				prepared = true
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
		err = system.Says(ctx, name, bin, "Version", "--version")
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
