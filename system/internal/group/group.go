// Package group is the cluster of independent nodes that most systems return.
package group

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
)

// Node is a node that can be stopped.
type Node interface {
	system.Node
	// Stop ends the node's processes and connections; it may be called again.
	Stop(ctx context.Context) error
}

// Group is a system.Cluster of nodes that know nothing of each other.
type Group struct {
	nodes    []Node
	identity map[string]string
}

// Start calls start n times; when one fails, those before it are stopped.
func Start(
	ctx context.Context, n int, identity map[string]string, start func(ctx context.Context, i int) (Node, error),
) (system.Cluster, error) {
	g := &Group{identity: identity}
	for i := range n {
		node, err := start(ctx, i)
		if err != nil {
			return nil, errors.Join(err, g.Stop(context.WithoutCancel(ctx)))
		}
		g.nodes = append(g.nodes, node)
	}
	return g, nil
}

// StartAll is Start with all at once.
func StartAll(
	ctx context.Context, n int, identity map[string]string, start func(ctx context.Context, i int) (Node, error),
) (system.Cluster, error) {
	nodes, errs := make([]Node, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { nodes[i], errs[i] = start(ctx, i) })
	}
	all.Wait()
	g := &Group{identity: identity}
	for i, err := range errs {
		if err == nil {
			g.nodes = append(g.nodes, nodes[i])
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, g.Stop(context.WithoutCancel(ctx)))
	}
	return g, nil
}

// Nodes implements system.Cluster.
func (g *Group) Nodes() []system.Node {
	nodes := make([]system.Node, len(g.nodes))
	for i, n := range g.nodes {
		nodes[i] = n
	}
	return nodes
}

// Identity implements system.Cluster.
func (g *Group) Identity() map[string]string { return maps.Clone(g.identity) }

// Stop stops all nodes at the same time.
func (g *Group) Stop(ctx context.Context) error {
	errs := make([]error, len(g.nodes))
	var wg sync.WaitGroup
	for i, n := range g.nodes {
		wg.Go(func() { errs[i] = n.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Library is the version of a library in this binary.
func Library(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch {
			case m.Path != path:
			case m.Replace != nil:
				return m.Replace.Path + " " + m.Replace.Version
			default:
				return m.Version
			}
		}
	}
	return "(version unknown)"
}
