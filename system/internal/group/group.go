// Package group provides the cluster of independent nodes that most systems return.
package group

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Node is a node that can be stopped.
type Node interface {
	system.Node
	// Stop ends the node's processes and connections; it may be called again.
	Stop(ctx context.Context) error
}

// Group is a system.Cluster of independent nodes.
type Group struct {
	nodes    []Node
	identity map[string]string
}

// One returns the cluster of one existing node, unless there is an error.
func One(identity map[string]string, n Node, err error) (system.Cluster, error) {
	if err != nil {
		return nil, err
	}
	return &Group{[]Node{n}, identity}, nil
}

// Several is how many nodes of a swarm are started at once: each needs CPU time before it is ready.
const Several = 8

// Start calls start n times, in order, and at most atOnce times at once. If a call fails, the nodes
// of the others are stopped.
func Start(ctx context.Context, n, atOnce int, identity map[string]string,
	start func(ctx context.Context, i int) (Node, error)) (system.Cluster, error) {
	g := &Group{identity: identity, nodes: make([]Node, n)}
	var starting errgroup.Group
	starting.SetLimit(atOnce)
	for i := range n {
		starting.Go(func() error {
			node, err := start(ctx, i)
			if err == nil {
				g.nodes[i] = node
			}
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		g.nodes = slices.DeleteFunc(g.nodes, func(n Node) bool { return n == nil })
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

// Stop stops all nodes concurrently.
func (g *Group) Stop(ctx context.Context) error {
	return Each(g.nodes, func(_ int, n Node) error { return n.Stop(ctx) })
}

// Each calls do for all elements concurrently.
func Each[T any](all []T, do func(i int, one T) error) error {
	return errors.Join(testbed.AtOnce(len(all), func(i int) error { return do(i, all[i]) })...)
}

// Library returns the version of a library in this binary.
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
