package kubo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is one process of Kubo and its repo.
type daemon struct {
	member.Process
	bin      string
	repo     disk.Dir
	swarmKey string
	rpc      *rpc
	gateway  *url.URL
}

// swarmKey is a private swarm's pre-shared key, as a file of its own.
func swarmKey() string {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	return "/key/swarm/psk/1.0.0/\n/base16/\n" + hex.EncodeToString(secret[:]) + "\n"
}

// newDaemon makes the repo of a node whose RPC is at port, and starts the node.
func newDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label, bin, key string, port int) (*daemon, error) {
	k := &daemon{
		Process: member.Process{System: name, Label: name + "/" + label, Host: h},
		bin:     bin, repo: disk.Of(d, h, label), swarmKey: key,
	}
	if err := k.initialize(ctx); err != nil {
		return nil, err
	}
	ports, err := member.Ports(ctx, h, []int{port}, 2)
	if err != nil {
		return nil, err
	}
	if err := configure(ctx, k.repo, h.Addr(), port, ports[0], ports[1]); err != nil {
		return nil, err
	}
	k.gateway = &url.URL{Scheme: "http", Host: system.JoinPort(h, ports[0])}
	if k.rpc, err = newRPC(h.Dial, &url.URL{Scheme: "http", Host: system.JoinPort(h, port)}, layoutOf(d.Options)); err != nil {
		return nil, err
	}
	if err := k.run(ctx); err != nil {
		k.rpc.web.Close()
		return nil, err
	}
	return k, nil
}

// configFile is in the repo.
const configFile = "config"

// initialize makes a repo with the swarm's key. With the name of a configuration
// the node has its settings and identity.
func (k *daemon) initialize(ctx context.Context, config ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args := []string{"init", "--profile=test,announce-off"}
	if len(config) > 0 {
		args = append([]string{"init"}, config...)
	}
	if err := testbed.Run(ctx, k.Host, testbed.Command{
		Name: k.Label + "/init", Role: "system", Args: append([]string{k.bin}, args...), Dir: k.repo.Path, Env: environment(k.repo.Path),
	}); err != nil {
		return err
	}
	return k.repo.Files.Write(ctx, k.repo.Sub("swarm.key").Path, 0o600, strings.NewReader(k.swarmKey))
}

func environment(repo string) []string {
	return []string{
		"IPFS_PATH=" + repo,
		"LIBP2P_FORCE_PNET=1", // or a node without the key joins the public network
		"IPFS_TELEMETRY=off",
	}
}

// run starts the process and waits until it answers.
func (k *daemon) run(ctx context.Context) error {
	return k.Run(ctx, testbed.Command{Args: []string{k.bin, "daemon"}, Dir: k.repo.Path, Env: environment(k.repo.Path), Ready: k.rpc.Ping})
}

// empty makes the repo anew; identity and settings stay.
func (k *daemon) empty(ctx context.Context) error {
	files, config, kept := k.repo.Files, k.repo.Sub(configFile).Path, k.repo.Path+".config"
	if err := files.Rename(config, kept); err != nil {
		return err
	}
	if err := files.RemoveAll(k.repo.Path); err != nil {
		return err
	}
	if err := k.initialize(ctx, kept); err != nil {
		return err
	}
	return files.Rename(kept, config)
}
