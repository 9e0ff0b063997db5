package siad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// System implements system.System.
type System struct{}

var (
	_ system.System   = System{}
	_ system.Healther = (*node)(nil)
	_ system.Ranger   = (*node)(nil)
	_ system.Deleter  = (*node)(nil)
	_ system.Lister   = (*node)(nil)
	_ system.Stater   = (*node)(nil)
	_ system.Settler  = (*node)(nil)
	_ system.Cooler   = (*node)(nil)
	_ system.Stats    = (*node)(nil)
	_ system.Coster   = (*node)(nil)
	_ system.Provider = provider{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] == "" {
		if _, err := binary(opt); err != nil {
			return []system.Problem{{What: err.Error(), Hint: s.Info().Install}}
		}
		return nil
	}
	base, _, err := s.endpoint(opt)
	if err != nil {
		return []system.Problem{{What: err.Error(), Hint: "mend the `with:` of system siad in the experiment file"}}
	}
	return web.Unreachable(ctx, name, []string{web.HostPort(base)})
}

// Start implements system.System: renter and miner on the client's host, the
// storage hosts on the server's, all of a network of their own.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	d.Options = opt
	if opt["url"] != "" {
		return nil, errors.New("siad: option \"url\" is for mode: attach")
	}
	if len(d.Hosts) == 0 {
		return nil, errors.New("siad: no server host to start storage hosts on")
	}
	bin, err := binary(opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	p, err := planOf(opt)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{"binary": bin, "network": "private", "hosts": strconv.Itoa(p.hosts), "mining": "until ready"}
	if p.mine {
		identity["mining"] = "always"
	}
	return group.Start(ctx, 1, identity, func(ctx context.Context, _ int) (group.Node, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("the network was not ready within %v (option `start_timeout`)", p.timeout))
		defer cancel()
		n, err := startNetwork(ctx, d, bin, p)
		if err != nil {
			return nil, err
		}
		if err := n.identify(ctx, identity); err != nil {
			return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
		}
		return n, nil
	})
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	base, password, err := s.endpoint(opt)
	if err != nil {
		return nil, err
	}
	a, err := connect(base, password, d.Client)
	if err != nil {
		return nil, err
	}
	n := newNode(a, opt)
	n.attached, n.write = true, d.Write
	identity := map[string]string{"endpoint": base.Host}
	if err := n.attach(ctx, opt, identity); err != nil {
		a.close()
		return nil, err
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) {
		if n.write {
			return n, nil
		}
		return provider{n}, nil
	})
}

// attach checks what would otherwise show as an upload that goes nowhere.
func (n *node) attach(ctx context.Context, opt system.Options, identity map[string]string) error {
	if err := n.api.checkPassword(ctx); err != nil {
		return err
	}
	if err := n.api.synced(ctx); err != nil {
		return err
	}
	if err := n.pieces(ctx, opt); err != nil {
		return err
	}
	if n.write { // reading needs neither a wallet nor contracts for uploads
		if err := n.unlock(ctx, opt); err != nil {
			return err
		}
		if err := n.ready(ctx); err != nil {
			return err
		}
	}
	return n.identify(ctx, identity)
}

// pieces takes the redundancy from the options, or the renter's own.
func (n *node) pieces(ctx context.Context, opt system.Options) (err error) {
	if n.data, n.parity, err = redundancy(opt); err != nil || n.data > 0 {
		return err
	}
	var own readyAnswer
	if err := n.api.get(ctx, "/renter/uploadready", nil, &own); err != nil {
		return err
	}
	if own.DataPieces < 1 || own.ParityPieces < 1 {
		return fmt.Errorf("siad: %s tells no default redundancy; set options `data_pieces` and `parity_pieces`", n.api.base.Host)
	}
	n.data, n.parity = own.DataPieces, own.ParityPieces
	return nil
}

// unlock unlocks the wallet when it is locked and its password is known.
func (n *node) unlock(ctx context.Context, opt system.Options) error {
	locked := n.unlocked(ctx)
	if env := opt["wallet_password"]; env == "" || !errors.Is(locked, system.ErrLocked) {
		return locked
	}
	password, set := os.LookupEnv(opt["wallet_password"])
	if !set {
		return fmt.Errorf("%w: the environment has no variable %s", locked, opt["wallet_password"])
	}
	return n.api.post(ctx, "/wallet/unlock", url.Values{"encryptionpassword": {password}}, nil)
}

// ready asks whether uploads would be taken.
func (n *node) ready(ctx context.Context) error {
	r, err := n.uploadReady(ctx)
	if err == nil && !r.Ready {
		err = fmt.Errorf("siad: %s has %d contracts for uploads and needs %d: %w", n.api.base.Host, r.Active, r.Needed, system.ErrTooFew)
	}
	return err
}

func (n *node) uploadReady(ctx context.Context) (r readyAnswer, err error) {
	err = n.api.get(ctx, "/renter/uploadready", url.Values{
		"datapieces": {strconv.FormatInt(n.data, 10)}, "paritypieces": {strconv.FormatInt(n.parity, 10)},
	}, &r)
	return r, err
}

// identify fills in what the record keeps of the daemon.
func (n *node) identify(ctx context.Context, identity map[string]string) error {
	var v struct {
		Version string `json:"version"`
	}
	if err := n.api.get(ctx, "/daemon/version", nil, &v); err != nil {
		return err
	}
	identity["version"] = "siad " + v.Version
	identity["redundancy"] = fmt.Sprintf("%d data + %d parity pieces", n.data, n.parity)
	identity["put"] = "uploadstream: accepted at redundancy 1"
	identity["get"] = "download with disablelocalfetch=true: from hosts"
	identity["connections"] = "the daemon keeps its sessions with hosts"
	return nil
}

func (s System) endpoint(opt system.Options) (base *url.URL, password string, err error) {
	if opt, err = s.Info().Fill(opt); err != nil {
		return nil, "", err
	}
	base, err = url.Parse(opt["url"])
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil {
		return nil, "", fmt.Errorf("siad: option \"url\": %q is not the URL of an API, such as http://127.0.0.1:9980", opt["url"])
	}
	password, set := os.LookupEnv(opt["password"])
	if !set {
		return nil, "", fmt.Errorf("siad: option \"password\": the environment has no variable %s", opt["password"])
	}
	return base, password, nil
}

// redundancy is that of the options; 0, 0: not given.
func redundancy(opt system.Options) (data, parity int64, err error) {
	if data, err = opt.Int("data_pieces"); err != nil {
		return 0, 0, fmt.Errorf("siad: %w", err)
	}
	if parity, err = opt.Int("parity_pieces"); err != nil {
		return 0, 0, fmt.Errorf("siad: %w", err)
	}
	if (data == 0) != (parity == 0) || data < 0 || parity < 0 {
		return 0, 0, fmt.Errorf("siad: options `data_pieces` and `parity_pieces` are %d and %d: siad takes both, each at least 1", data, parity)
	}
	return data, parity, nil
}

// plan is what to start.
type plan struct {
	hosts        int
	data, parity int64
	hostSize     int64
	mine         bool
	wallet       string // password of all wallets; needed once
	timeout      time.Duration
}

const folderUnit = 16 << 20 // 64 sectors of the dev constants

func planOf(opt system.Options) (plan, error) {
	hosts, err1 := opt.Int("hosts")
	size, err2 := opt.Int("host_size")
	timeout, err3 := opt.Duration("start_timeout")
	if err := errors.Join(err1, err2, err3); err != nil {
		return plan{}, fmt.Errorf("siad: %w", err)
	}
	data, parity, err := redundancy(opt)
	if err != nil {
		return plan{}, err
	}
	if data == 0 {
		data, parity = 1, max(hosts-1, 1)
	}
	switch {
	case hosts < 2 || hosts > 64:
		return plan{}, fmt.Errorf("siad: option \"hosts\": %d is not between 2 and 64", hosts)
	case data+parity > hosts:
		return plan{}, fmt.Errorf("siad: %d data + %d parity pieces need as many hosts, there are %d: %w", data, parity, hosts, system.ErrTooFew)
	case size < folderUnit || size%folderUnit != 0:
		return plan{}, fmt.Errorf("siad: option \"host_size\": %d is not a multiple of 16 MiB", size)
	case timeout <= 0:
		return plan{}, fmt.Errorf("siad: option \"start_timeout\": %v is not positive", timeout)
	}
	return plan{hosts: int(hosts), data: data, parity: parity, hostSize: size, mine: opt.Bool("mine"), wallet: rand.Text(), timeout: timeout}, nil
}

// binary finds siad.
func binary(opt system.Options) (string, error) {
	for _, named := range []struct{ by, path string }{{"option `binary`", opt["binary"]}, {"PLIMSOLL_SIAD", os.Getenv("PLIMSOLL_SIAD")}} {
		if named.path == "" {
			continue
		}
		if _, err := exec.LookPath(named.path); err != nil {
			return "", fmt.Errorf("siad: %s: %w", named.by, err)
		}
		return filepath.Abs(named.path)
	}
	return "", errors.New("siad: no binary is named, and none that plimsoll could use is to be had elsewhere")
}
