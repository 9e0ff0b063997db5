package siachain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// statePath is where a fresh node reports its progress: GET returns a system.Following.
const statePath = "/state"

// report is what the process of a finite task writes: its progress or its result.
type report struct {
	Say      string           `json:",omitempty"`
	Chain    *system.Chain    `json:",omitempty"`
	Replayed *system.Replayed `json:",omitempty"`
}

// task is the task of a process: its argument, as JSON.
type task struct {
	Control  string         // address of the control API
	Do       string         // make, replay, serve or follow
	Spec     chain.Spec     `json:",omitzero"`  // make
	Cache    string         `json:",omitempty"` // make: directory of the cached chains
	Chain    string         `json:",omitempty"` // all others: directory of the chain
	Listen   string         `json:",omitempty"` // serve, follow: address for the gateway protocol
	Manner   string         `json:",omitempty"` // serve
	Dir      string         `json:",omitempty"` // follow, replay: directory of the store
	Peers    []string       `json:",omitempty"` // follow: addresses
	Settings system.Options `json:",omitempty"` // follow, replay
}

// Serve implements system.Embedded: `plimsoll node sia-chain`. It does a finite task, or serves or
// follows with a control API until ctx ends. The end of the process also ends servers and followers:
// what they have committed is consistent at any time.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) (err error) {
	var t task
	if err := member.Configure(args, &t); err != nil {
		return err
	}
	if t.Settings, err = (System{}).Info().Fill(t.Settings); err != nil {
		return err
	}
	if t.Listen == "" {
		return t.work(ctx, json.NewEncoder(stdout))
	}
	gateway, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.Listen)
	if err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	defer gateway.Close()
	state, err := t.begin(gateway)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+member.HealthPath, func(http.ResponseWriter, *http.Request) {})
	if state != nil {
		mux.HandleFunc("GET "+statePath, member.Answer(func(w http.ResponseWriter, _ *http.Request) error {
			return json.NewEncoder(w).Encode(state())
		}))
	}
	return member.Serve(ctx, name, stdout, member.Server{What: "control of " + t.Do, Address: t.Control, Handler: mux})
}

// begin starts to serve or to follow; state returns the progress of a fresh node.
func (t task) begin(gateway net.Listener) (state func() system.Following, err error) {
	c, err := chain.Open(t.Chain)
	switch {
	case err != nil:
		return nil, err
	case t.Do == "follow":
		return t.follow(c, gateway)
	case t.Manner == system.Honest:
		return nil, t.serve(c, gateway)
	}
	go t.refuse(c, gateway)
	return nil, nil
}
