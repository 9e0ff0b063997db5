package engine

import (
	"context"
)

// checkLinks refuses changes of links that no emulator makes here. An attached system
// is reached over the network there is, so its cells have no link to check.
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
	if changes && attaches(cfg.Plan) {
		return []Problem{{
			What:     "the links of an attached system cannot be changed",
			Hint:     "leave out what changes links, or let Plimsoll start the system",
			Blocking: true,
		}}
	}
	return nil
}
