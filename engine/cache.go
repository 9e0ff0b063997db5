package engine

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// dropCaches empties the page caches of all machines that the system runs on.
func (s *site) dropCaches(ctx context.Context) error {
	for _, h := range testbed.OneOnEach(s.hosts) {
		if err := h.Machine().DropCaches(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkCache refuses cold caches where they cannot be had.
func checkCache(cfg Config, at nodePlace) []Problem {
	for _, c := range cfg.Plan.Cells {
		if c.Disseminate == nil || c.Disseminate.Cache != "cold" {
			continue
		}
		err := at.MayDropCaches()
		if err == nil {
			return nil
		}
		return []Problem{refuse(fmt.Sprintf("disseminate.cache: cold: %v", err),
			"run as root of the machine, not of a container, or say disseminate: {cache: warm}")}
	}
	return nil
}
