package engine

import (
	"context"
)

// checkLinks refuses links that cannot be had: an attached system is reached
// over whatever network there is, and an emulator that is not there, or that does
// not know one pair of nodes from another, cannot part them.
func checkLinks(_ context.Context, cfg Config) []Problem {
	changes, cuts := plansChanges(cfg.Plan)
	switch emulator := cfg.Plan.Experiment.Link.Emulator; {
	case changes && emulator == "none":
		return []Problem{{
			What:     "the experiment changes single nodes' links (up, slow, speeds, trouble or faults), and asks for links that are not emulated",
			Hint:     "say link: {emulator: auto}",
			Blocking: true,
		}}
	case cuts && emulator == "netem":
		return []Problem{{
			What:     "netem cannot cut nodes off from each other: it does not know one pair from another",
			Hint:     "say link: {emulator: tun}, or auto, which chooses it",
			Blocking: true,
		}}
	}
	if !attaches(cfg.Plan) {
		return nil
	}
	for _, c := range cfg.Plan.Cells {
		if c.Link.Shaped() || changes {
			return []Problem{{
				What:     "the link to an attached system cannot be emulated",
				Hint:     "leave link out of the experiment, and what changes links, or let Plimsoll start the system",
				Blocking: true,
			}}
		}
	}
	return nil
}
