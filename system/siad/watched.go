package siad

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// watched is a siad of the user's, observed while it follows the chain to its end.
type watched struct {
	api *api
}

// watch attaches to one that need be nothing but reachable: neither synced nor
// with a renter. What is asked of it needs no password.
func (s System) watch(ctx context.Context, d system.Deployment, identity map[string]string) (*watched, error) {
	base, password, err := sia.Endpoint(s.Info(), d.Options)
	if err != nil {
		return nil, err
	}
	a, err := connect(base, password, d.Client)
	if err != nil {
		return nil, err
	}
	version, err := a.version(ctx)
	if err == nil {
		_, err = a.consensus(ctx)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	identity["version"] = "siad " + version
	return &watched{api: a}, nil
}

// Following implements system.Follower.
func (w *watched) Following(ctx context.Context) (system.Following, error) {
	return w.api.following(ctx)
}

func (w *watched) refuse(what string) error {
	return fmt.Errorf("siad: %s was not started here and is only watched: it is not %s", w.api.base.Host, what)
}

// Serve implements system.Follower: it does not.
func (w *watched) Serve(context.Context, system.ServeTask) error {
	return w.refuse("made to serve another chain")
}

// Follow implements system.Follower: it does not.
func (w *watched) Follow(context.Context, system.FollowTask) error {
	return w.refuse("started on a fresh store")
}

// Address implements system.Follower.
func (w *watched) Address(ctx context.Context) (string, error) {
	var g gatewayAnswer
	if err := w.api.get(ctx, "/gateway", nil, &g); err != nil {
		return "", err
	}
	if g.Address == "" {
		return "", fmt.Errorf("siad: %s reports no address of its gateway", w.api.base.Host)
	}
	return g.Address, nil
}

// Halt implements system.Follower: nothing of ours runs.
func (w *watched) Halt(context.Context) error { return nil }

// Kill implements system.Follower: it does not.
func (w *watched) Kill(context.Context) error { return w.refuse("killed") }

// Processes implements system.Node.
func (w *watched) Processes() []testbed.Process { return nil }

// Endpoints implements system.Endpointer.
func (w *watched) Endpoints() []string { return []string{web.HostPort(w.api.base)} }

// Stop implements group.Node.
func (w *watched) Stop(context.Context) error {
	w.api.close()
	return nil
}
