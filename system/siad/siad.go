package siad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// System implements system.System.
type System struct{}

var (
	_ system.Healther = (*node)(nil)
	_ system.Walker   = (*node)(nil)
	_ system.Provider = provider{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] == "" {
		if _, err := planOf(opt); err != nil {
			return system.WrongOptions(name, err)
		}
		_, err := buildOf(ctx, opt)
		return s.Info().Missing(err)
	}
	base, _, err := sia.Endpoint(name, opt)
	if err != nil {
		return system.WrongOptions("siad", err)
	}
	return web.Unreachable(ctx, name, []string{web.HostPort(base)})
}

// Start implements system.System: renter and miner on the client's host, the
// storage hosts on the server's, all of a network of their own.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	if len(d.Hosts) == 0 {
		return nil, errors.New("siad: no server host to start storage hosts on")
	}
	if err := ownNetwork(d.Hosts...); err != nil {
		return nil, err
	}
	b, err := buildOf(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	if d.Follow {
		return startChains(ctx, d, b)
	}
	p, err := planOf(d.Options)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{"binary": b.path, "network": "private", "sector": strconv.Itoa(sia.DevSector),
		"hosts": strconv.Itoa(p.hosts), "mining": "until ready"}
	return group.Start(ctx, 1, identity, func(ctx context.Context, _ int) (group.Node, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, p.timeout,
			fmt.Errorf("the network was not ready within %v (option `start_timeout`)", p.timeout))
		defer cancel()
		n, err := startNetwork(ctx, d, b.path, p)
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
	base, password, err := sia.Endpoint(name, d.Options)
	if err != nil {
		return nil, err
	}
	a, err := connect(base, password, d.Client)
	if err != nil {
		return nil, err
	}
	n := newNode(a, d.Options)
	n.Write, n.Mark = d.Write, d.Mark()
	identity := map[string]string{"endpoint": base.Host, "sector": strconv.Itoa(sia.Sector)}
	if err := n.attach(ctx, d.Options, identity); err != nil {
		a.Close()
		return nil, err
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) {
		if n.Write {
			return n, nil
		}
		return provider{n}, nil
	})
}

// plan is what to start.
type plan struct {
	hosts        int
	data, parity int64
	hostSize     int64
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
	data, parity, err := sia.Pair(name, opt, "data_pieces", "parity_pieces")
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
		return plan{}, fmt.Errorf("siad: %d data + %d parity pieces need as many hosts, there are %d: %w", data, parity,
			hosts, system.ErrTooFew)
	case size < folderUnit || size%folderUnit != 0:
		return plan{}, fmt.Errorf("siad: option \"host_size\": %d is not a multiple of 16 MiB", size)
	case timeout <= 0:
		return plan{}, fmt.Errorf("siad: option \"start_timeout\": %v is not positive", timeout)
	}
	return plan{hosts: int(hosts), data: data, parity: parity, hostSize: size, wallet: rand.Text(), timeout: timeout},
		nil
}
