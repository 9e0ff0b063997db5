package siachain

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// statePath is where a process reports what it does: GET returns a state.
const statePath = "/state"

// state is the answer.
type state struct {
	Failed    string            `json:",omitempty"` // why it cannot do its task
	Following *system.Following `json:",omitempty"` // of a fresh node
}

// task is what a process is to do, from its flags.
type task struct {
	control, listen   string
	cache, chain, dir string
	spec              chain.Spec
	manner            string
	peers             []string
	settings          settings
	do                string
	rawSpec, rawPeers string
	rawSettings       string
}

func parseTask(args []string, stderr io.Writer) (t task, err error) {
	flags := flag.NewFlagSet("node sia-chain", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&t.do, "do", "", "make or replay a chain, or serve or follow it")
	flags.StringVar(&t.control, "control", "", "serve, follow: `address` of the control API")
	flags.StringVar(&t.listen, "listen", "", "serve, follow: `address` of the gateway protocol")
	flags.StringVar(&t.cache, "cache", "", "make: `directory` of chains")
	flags.StringVar(&t.rawSpec, "spec", "{}", "make: which chain, as `JSON`")
	flags.StringVar(&t.chain, "chain", "", "all others: `directory` of the chain")
	flags.StringVar(&t.dir, "dir", "", "follow, replay: `directory` of the store")
	flags.StringVar(&t.rawPeers, "peers", "[]", "follow: addresses, as `JSON`; replay: as many workers")
	flags.StringVar(&t.manner, "manner", system.Honest, "serve: silent, stranger; empty: honest")
	flags.StringVar(&t.rawSettings, "settings", "{}", "serve, follow, replay: options, as `JSON`")
	if err := flags.Parse(args); err != nil {
		return t, err
	}
	if flags.NArg() > 0 {
		return t, fmt.Errorf("sia-chain: nothing besides flags, not %q", flags.Args())
	}
	var opt system.Options
	for raw, to := range map[string]any{t.rawSpec: &t.spec, t.rawPeers: &t.peers, t.rawSettings: &opt} {
		if err := json.Unmarshal([]byte(raw), to); err != nil {
			return t, fmt.Errorf("sia-chain: %s: %w", raw, err)
		}
	}
	t.settings, err = parse(opt)
	return t, err
}

// Serve implements system.Embedded: `plimsoll node sia-chain`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	t, err := parseTask(args, stderr)
	if err != nil {
		return err
	}
	switch t.do {
	case "make":
		return t.once(stdout, func(say func(progress)) error { return t.make(ctx, say) })
	case "replay":
		return t.once(stdout, func(say func(progress)) error { return t.replay(ctx, say) })
	case "serve", "follow":
		return t.node(ctx, stdout)
	}
	return fmt.Errorf("sia-chain: --do is make, replay, serve or follow, not %q", t.do)
}

// once does what has an end, and reports on stdout.
func (task) once(stdout io.Writer, do func(say func(progress)) error) error {
	out := json.NewEncoder(stdout)
	say := func(p progress) { _ = out.Encode(p) } // who reads has gone: the work is ended soon
	err := do(say)
	if err != nil {
		say(progress{Error: err.Error()})
	}
	return err
}

// doer is what a process does until it is closed.
type doer interface {
	state() state
	close() error
}

// node serves the control API, and does the task until ctx ends. When the
// task cannot be done, the API reports why, and the process waits to be ended.
func (t task) node(ctx context.Context, stdout io.Writer) error {
	if t.control == "" || t.listen == "" || t.chain == "" || t.do == "follow" && t.dir == "" {
		return errors.New("sia-chain: give --control, --listen and --chain, and --dir to follow")
	}
	control, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.control)
	if err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	defer control.Close()
	// before the store is opened, which takes time: peers may already know the address
	gateway, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.listen)
	if err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	defer gateway.Close()
	d, err := t.begin(gateway)
	if err != nil {
		d = failed{err}
	}
	fmt.Fprintf(stdout, "sia-chain: %s at %s, control at http://%s/\n", t.do, t.listen, t.control)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+member.HealthPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+statePath, member.Answer(func(w http.ResponseWriter, _ *http.Request) error {
		return json.NewEncoder(w).Encode(d.state())
	}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer srv.Close()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(control) }()
	select {
	case <-ctx.Done():
		return d.close()
	case err := <-ended:
		return errors.Join(fmt.Errorf("sia-chain: %w", err), d.close())
	}
}

func (t task) begin(gateway net.Listener) (doer, error) {
	c, err := chain.Open(t.chain)
	if err != nil {
		return nil, err
	}
	switch {
	case t.do == "follow":
		return t.follow(c, gateway)
	case t.manner == system.Honest:
		return t.serve(c, gateway)
	case t.manner == system.Silent:
		return t.refuse(c, gateway, false)
	case t.manner == system.Stranger:
		return t.refuse(c, gateway, true)
	}
	return nil, fmt.Errorf("sia-chain: a peer is silent, a stranger or honest, not %q", t.manner)
}

// failed is a task that cannot be done.
type failed struct{ err error }

func (f failed) state() state { return state{Failed: f.err.Error()} }
func (f failed) close() error { return nil }
