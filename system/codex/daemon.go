package codex

import (
	"context"
	"errors"
	"io/fs"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// keyFile is a node's identity within its data directory.
const keyFile = "key"

// daemon is one process of Codex and its data directory.
type daemon struct {
	member.Process
	dir     disk.Dir
	command []string
	api     *api
	version string
}

// newDaemon starts a node; bootstrap is the record of the one that it is to know.
func newDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label, bin string, speaks dialect, port int, bootstrap string) (*daemon, error) {
	k := &daemon{Process: member.Process{System: name, Label: name + "/" + label, Host: h}, dir: disk.Of(d, h, label)}
	ports, err := member.Ports(ctx, h, []int{port}, 2)
	if err != nil {
		return nil, err
	}
	args, err := arguments(d.Options, speaks, h.Addr(), k.dir.Path, port, ports[0], ports[1], bootstrap)
	if err != nil {
		return nil, err
	}
	k.command = append([]string{bin}, args...)
	if k.api, err = newAPI(h.Dial, &url.URL{Scheme: "http", Host: system.JoinPort(h, port)}); err != nil {
		return nil, err
	}
	k.api.dialect = speaks
	if err := k.run(ctx); err != nil {
		k.api.web.Close()
		return nil, err
	}
	i, err := k.api.info(ctx)
	if err != nil {
		return nil, errors.Join(err, k.Stop(context.WithoutCancel(ctx)))
	}
	k.version = i.version()
	return k, nil
}

// run starts the program and waits until its interface answers.
func (k *daemon) run(ctx context.Context) error {
	if err := k.dir.Files.MkdirAll(k.dir.Path, 0o700); err != nil { // it starts in no other
		return err
	}
	return k.Run(ctx, testbed.Command{Args: k.command, Dir: k.dir.Path, Ready: func(ctx context.Context) error {
		_, err := k.api.info(ctx)
		return err
	}})
}

// empty removes what a node keeps, but for its key.
func (k *daemon) empty() error {
	files, key, kept := k.dir.Files, k.dir.Sub(keyFile).Path, k.dir.Path+".key"
	if err := files.Rename(key, kept); errors.Is(err, fs.ErrNotExist) {
		return files.RemoveAll(k.dir.Path)
	} else if err != nil {
		return err
	}
	return errors.Join(files.RemoveAll(k.dir.Path), files.MkdirAll(k.dir.Path, 0o700), files.Rename(kept, key))
}
