package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// checkTime limits the check of one system.
const checkTime = 30 * time.Second

// checkSystems asks every system of the plan what it lacks.
func checkSystems(ctx context.Context, cfg Config, _ nodePlace) (all []Problem) {
	for _, use := range cfg.Plan.Experiment.Systems {
		sys := findSystem(cfg.Systems, use.Use)
		if sys == nil {
			all = append(all, refuse(fmt.Sprintf("there is no system %q", use.Use), "see plimsoll systems"))
			continue
		}
		with, _ := sys.Info().Fill(use.With)
		if key := sys.Info().Attaching(with); with != nil && key != "" && !use.Attached() {
			all = append(all, refuse(fmt.Sprintf("%s: option %q is for mode: attach", use.Name, key), "add mode: attach"))
			continue
		}
		checkCtx, cancel := context.WithTimeout(ctx, checkTime)
		problems := system.Check(checkCtx, sys, system.Options(use.With))
		for _, p := range problems {
			// Replace the system's own name in its error by its name in the file.
			what := strings.TrimPrefix(p.What, use.Use+": ")
			all = append(all, Problem{What: use.Name + ": " + what, Hint: p.Hint, Blocking: true, Here: !p.Options})
		}
		// The objects to fetch from an attached system are named by the experiment: check that they
		// exist before anything runs.
		if len(problems) == 0 && use.Attached() && cfg.Plan.Experiment.Retrieve != nil {
			if err := look(checkCtx, sys, use); err != nil && !errors.Is(err, system.ErrReadOnly) {
				all = append(all, refuse(use.Name+": "+strings.TrimPrefix(err.Error(), use.Use+": "), attachHint))
			}
		}
		cancel()
	}
	return all
}

// look attaches to a system like a run, but without the permission to write.
func look(ctx context.Context, sys system.System, use experiment.SystemUse) (err error) {
	dir, err := os.MkdirTemp("", "plimsoll-look-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bed, err := testbed.New(ctx, testbed.Options{Dir: dir, Plain: true, Emulate: "none"})
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

const attachHint = "is the server running, and is its address right?"

// checkScenario asks the scenario whether it can run on the systems.
func checkScenario(_ context.Context, cfg Config, _ nodePlace) (all []Problem) {
	e := cfg.Plan.Experiment
	for _, use := range e.Systems {
		info := infoOf(cfg.Systems, use)
		for _, p := range cfg.Scenario.Problems(use, info, cfg.Plan.CellsOf(use.Name)) {
			all = append(all, refuse(use.Name+": "+p.What, p.Hint))
		}
		// A system that cannot be written to has its own objects.
		if use.Attached() && info.Able("put") && e.Data.Size > 0 && !e.Allows("write") {
			all = append(all, refuse(use.Name+": data would be written to an attached system, which the experiment "+
				"does not allow", "leave data.size out to measure the objects that are there, or say allow: [write]"))
		}
		if use.Attached() && info.Able("cost") && e.Collect == nil && !e.Allows("spend") {
			all = append(all, refuse(use.Name+": it spends money on reads and writes, and the experiment does not "+
				"allow spending",
				"say allow: [write, spend] if it may write and pay, allow: [spend] if it may only read"))
		}
	}
	return all
}

// checkBudget refuses a load test that could spend without limit, since it may run unattended
// for weeks.
func checkBudget(_ context.Context, cfg Config, _ nodePlace) (all []Problem) {
	e := cfg.Plan.Experiment
	pays := false
	for _, use := range e.Systems {
		if !infoOf(cfg.Systems, use).Able("cost") {
			continue
		}
		pays = true
		if e.Upload != nil && use.Attached() && e.Exit.MaxSpend == "" {
			all = append(all, refuse(use.Name+": it spends money on storage, and exit.max_spend does not limit how much",
				"say exit: {max_spend: AMOUNT} in the system's currency, or skip: [budget] when its own limits are "+
					"enough"))
		}
	}
	if e.LoadTest() && !pays && e.Exit.MaxSpend != "" {
		all = append(all, refuse("exit.max_spend can never be met: no system has the ability cost",
			"leave it out: --set exit.max_spend="))
	}
	return all
}
