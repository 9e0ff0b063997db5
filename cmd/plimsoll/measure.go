package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// measured is the experiment of doctor --measure: swarms of the embedded systems over
// links that are emulated, so that the emulator's CPU is in their cost, too.
const measured = `
scenario: disseminate
systems: [bittorrent, boxo]
link: {rate: 1Gbit, delay: 1ms}
data: {size: 32MiB}
disseminate: {nodes: 4, seeders: 1}
repetitions: 3
warmup: 1
limits: {machine: none}
`

// measure finds what swarms cost this machine, and saves it for plan. Others may use so
// much of its CPU meanwhile as in the experiment that is asked about.
func (p *program) measure(ctx context.Context, others experiment.Fraction) error {
	set := fmt.Sprintf("limits.others=%g", float64(others))
	if others == 0 {
		set = "limits.others=none"
	}
	e, err := experiment.ParseKnowing("doctor --measure", []byte(measured), []string{set}, catalog(), known())
	if err != nil {
		return err
	}
	plan, err := e.Plan()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "plimsoll-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p.ui.Say("measuring what swarms cost this machine, for about a minute")
	res, err := engine.Run(ctx, engine.Config{
		Plan: plan, Systems: all.All(), Scenario: scenario.ByName("disseminate"), Dir: filepath.Join(dir, "run"),
		Version: programVersion(), Command: os.Args, WaitQuiet: time.Minute,
	})
	switch {
	case err != nil:
		return err
	case res.Interrupt:
		return ui.Exit(ui.CodeInterrupted, errors.New("interrupted; nothing was saved"))
	case len(res.Calibrated) < len(plan.Experiment.Systems):
		return ui.Exit(ui.CodeInvalid, ui.WithHint(
			fmt.Errorf("%d of %d systems could be measured", len(res.Calibrated), len(plan.Experiment.Systems)),
			"the machine was too busy; end what uses its CPUs and say `plimsoll doctor --measure` again"))
	}
	for _, name := range slices.Sorted(maps.Keys(res.Calibrated)) {
		if p.ui.JSON {
			p.ui.Emit(map[string]any{"type": "machine-line", "system": name, "seconds_per_gb": res.Calibrated[name]})
			continue
		}
		fmt.Fprintf(p.stdout, "%s: %.3g s of this machine's CPUs per GB delivered, links included\n", name, res.Calibrated[name])
	}
	return nil
}
