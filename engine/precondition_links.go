package engine

import (
	"context"
)

// checkLinks refuses links that cannot be had: an attached system is reached
// over whatever network there is.
func checkLinks(_ context.Context, cfg Config) []Problem {
	if !attaches(cfg.Plan) {
		return nil
	}
	for _, c := range cfg.Plan.Cells {
		if c.Link.Shaped() {
			return []Problem{{
				What:     "the link to an attached system cannot be emulated",
				Hint:     "leave link out of the experiment, or let Plimsoll start the system",
				Blocking: true,
			}}
		}
	}
	return nil
}
