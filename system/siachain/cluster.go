package siachain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// cluster implements system.Chains.
type cluster struct {
	system.Cluster
	d system.Deployment
}

// Chain implements system.Chains. A separate process makes the chain, which takes longer the longer
// the chain is; the process ends with ctx.
func (c *cluster) Chain(ctx context.Context, want system.ChainSpec, say func(string)) (system.Chain, error) {
	cache := cmp.Or(c.d.Cache, filepath.Join(c.d.DirOf(c.d.Client), "chains"))
	var made report
	for _, h := range testbed.OneOnEach(c.d.Hosts) { // the same spec gives the same blocks on each machine
		var err error
		if made, err = c.work(ctx, h, task{Do: "make", Cache: cache, Spec: chain.Spec(want)}, say); err != nil {
			return system.Chain{}, fmt.Errorf("sia-chain: make a chain of %d blocks: %w", want.Blocks, err)
		}
	}
	return *made.Chain, nil
}

// Replay implements system.Replayer.
func (c *cluster) Replay(ctx context.Context, what system.FollowTask) (system.Replayed, error) {
	t := task{Do: "replay", Chain: what.Chain.ID, Dir: what.Dir, Settings: what.Settings}
	s, err := c.work(ctx, c.d.Hosts[0], t, func(string) {})
	if err != nil {
		return system.Replayed{}, fmt.Errorf("sia-chain: replay: %w", err)
	}
	return *s.Replayed, nil
}

// work runs a process for a finite task on a host. The process writes its progress and its result.
func (c *cluster) work(ctx context.Context, h testbed.Host, t task, say func(string)) (r report, err error) {
	command, err := c.d.Node(name, member.Argument(t))
	if err != nil {
		return r, err
	}
	out, in := io.Pipe()
	defer out.Close()
	p, err := h.Start(ctx, testbed.Command{Name: name + "/" + t.Do, Role: "system", Args: command, Dir: c.d.DirOf(h),
		Stdout: in})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	defer context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })()
	for d := json.NewDecoder(out); ; say(r.Say) {
		r = report{}
		switch err := d.Decode(&r); {
		case err == io.EOF:
			<-p.Done()
			return r, cmp.Or(p.Err(), err)
		case err != nil || r.Say == "":
			return r, err
		}
	}
}
