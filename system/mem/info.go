// Package mem is a storage system in memory whose times are known: an operation
// on an object of size bytes takes
//
//	t = A + R·RTT + B·size,
//
// and fails as often as is asked for. It is
// the truth that the tests of the engine, of scenario overhead and of the fits
// compare their results with. It has every ability of a node that needs no
// server, and neither processes nor sockets, so that it runs in the virtual time
// of testing/synctest.
//
// Its nodes are a swarm, too, in which content spreads as a fluid: see [Links].
//
// It is not in package all: it measures nothing, and a list of systems that
// users choose from is no place for it.
package mem

import "github.com/plimsoll-project/plimsoll/system"

const name = "mem"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "objects in memory, with times and faults that are given: for tests",
		Modes:   []system.Mode{system.Start},
		Can: []string{"put", "range", "delete", "list", "stat", "update", "directory", "durable", "cold", "fresh",
			"stats", "phases", "cost", "spread", "restart"},
		Options: []system.Option{
			{Name: "a", Type: "duration", Default: "0s", Help: "time of an operation that neither distance nor size " +
				"changes"},
			{Name: "r", Type: "string", Default: "1", Help: "round trips of an operation, one after another"},
			{Name: "dial", Type: "string", Default: "0", Help: "further round trips of an operation that finds no " +
				"idle connection"},
			{Name: "rate", Type: "size", Default: "0", Help: "bytes per second, 1/B; 0: bytes take no time"},
			{Name: "rtt", Type: "duration", Default: "0s", Network: true,
				Help: "round trip time, until Change gives another"},
			{Name: "settle", Type: "duration", Default: "0s", Help: "time from acceptance until an object is durable"},
			{Name: "cache", Type: "bool", Default: "false", Help: "what was put or read is kept near the client " +
				"until Cool; reading it takes A alone"},
			{Name: "expansion", Type: "string", Default: "1", Help: "bytes kept by servers for each byte of an object"},
			{Name: "nodes", Type: "int", Default: "1", Help: "clients of the one store"},
			{Name: "seed", Type: "int", Default: "1", Help: "of faults"},
			{Name: "errors", Type: "string", Default: "0", Help: "share of operations that fail"},
			{Name: "up", Type: "size", Default: "0", Network: true,
				Help: "bytes per second that a node of a swarm sends; 0: no limit"},
			{Name: "down", Type: "size", Default: "0", Network: true,
				Help: "bytes per second that a node of a swarm receives; 0: no limit"},
			{Name: "pass", Type: "bool", Default: "false", Help: "a node of a swarm that has fetched all serves it, " +
				"too"},
		},
	}
}
