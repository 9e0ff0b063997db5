package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// checkTime bounds what one system's check may take.
const checkTime = 30 * time.Second

// checkSystems asks every system of the plan what it misses.
func checkSystems(ctx context.Context, cfg Config) []Problem {
	var all []Problem
	for _, use := range cfg.Plan.Experiment.Systems {
		sys := findSystem(cfg.Systems, use.Use)
		if sys == nil {
			all = append(all, refuse(fmt.Sprintf("there is no system %q", use.Use), "see plimsoll systems"))
			continue
		}
		found := false
		checkCtx, cancel := context.WithTimeout(ctx, checkTime)
		for _, p := range system.Check(checkCtx, sys, system.Options(use.With)) {
			// A system names itself in its errors; here its name in the file leads.
			what := strings.TrimPrefix(p.What, use.Use+": ")
			all = append(all, Problem{What: use.Name + ": " + what, Hint: p.Hint, Blocking: true, Here: !p.Options})
			found = true
		}
		if at := addressHere(use); at != "" && (cfg.Plan.Experiment.Limits.Others > 0 ||
			cfg.Plan.Experiment.Limits.Machine > 0) {
			all = append(all, Problem{
				Name: sharedMachine, Here: true,
				What: fmt.Sprintf("%s: %s is on this machine: the server shares its CPUs with the load generator",
					use.Name, at),
				Hint: "run it from another machine, or count the trials nevertheless: " +
					"--set limits.others=none --set limits.machine=none",
			})
		}
		if !found && readsObjects(cfg, use) {
			if err := look(checkCtx, cfg, sys, use); err != nil && !errors.Is(err, system.ErrReadOnly) {
				all = append(all, refuse(use.Name+": "+strings.TrimPrefix(err.Error(), use.Use+": "), attachHint))
			}
		}
		cancel()
	}
	return all
}

// sharedMachine names the problem that server and load generator use the same CPUs.
const sharedMachine = "shared-machine"

// addressHere is the loopback address at which an attached system is reached, or empty.
func addressHere(use experiment.SystemUse) string {
	if !use.Attached() {
		return ""
	}
	for _, value := range use.With {
		for _, address := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			host := address
			if u, err := url.Parse(address); err == nil && u.Host != "" {
				host = u.Hostname()
			} else if h, _, err := net.SplitHostPort(address); err == nil {
				host = h
			}
			if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
				return address
			}
		}
	}
	return ""
}

// look attaches to a system as a run does, but may not write.
func look(ctx context.Context, cfg Config, sys system.System, use experiment.SystemUse) (err error) {
	dir, err := os.MkdirTemp("", "plimsoll-look-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := testbed.New(ctx, testbed.Options{Dir: dir, Self: cfg.Self, Plain: true, Emulate: "none"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close(context.WithoutCancel(ctx))) }()
	client, err := bed.AddHost(ctx, "client")
	if err != nil {
		return err
	}
	d := system.Deployment{Client: client, Dir: dir, Options: system.Options(maps.Clone(use.With))}
	c, err := system.Begin(ctx, sys, system.Attach, d)
	if err != nil {
		return err
	}
	return c.Stop(context.WithoutCancel(ctx))
}

// readsObjects reports whether what is fetched are objects of an attached system,
// which the experiment names: they are looked for before anything runs.
func readsObjects(cfg Config, use experiment.SystemUse) bool {
	cells := cellsOf(cfg.Plan, use.Name)
	return use.Attached() && len(cells) > 0 && cells[0].Retrieve != nil
}

const attachHint = "is the server running, and is its address right?"

// checkScenario asks the scenario whether it can run on the systems.
func checkScenario(_ context.Context, cfg Config) []Problem {
	var all []Problem
	for _, use := range cfg.Plan.Experiment.Systems {
		sys := findSystem(cfg.Systems, use.Use)
		if sys == nil {
			continue
		}
		for _, p := range cfg.Scenario.Problems(use, sys.Info(), cellsOf(cfg.Plan, use.Name)) {
			all = append(all, refuse(use.Name+": "+p.What, p.Hint))
		}
		writable := sys.Info().Able("put") // else it has objects of its own
		if use.Attached() && writable && cfg.Plan.Experiment.Data.Size > 0 &&
			!slices.Contains(cfg.Plan.Experiment.Allow, "write") {
			all = append(all, refuse(use.Name+": data would be written to an attached system, which the experiment "+
				"does not allow",
				"leave data.size out to measure the objects that are there, or say allow: [write]"))
		}
		asksOnly := cfg.Plan.Experiment.Collect != nil
		if use.Attached() && sys.Info().Able("cost") && !asksOnly &&
			!slices.Contains(cfg.Plan.Experiment.Allow, "spend") {
			all = append(all, refuse(use.Name+": it pays for what it does, for reading as for writing, and the "+
				"experiment does not allow to spend money",
				"say allow: [write, spend] if it may write and pay, allow: [spend] if it may only read"))
		}
	}
	return all
}
