package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// HostsOf are the hosts of each system of a plan that is started, beside the client's.
func HostsOf(plan *experiment.Plan) (all [][]string) {
	for _, use := range plan.Experiment.Systems {
		if use.Mode != string(system.Attach) {
			all = append(all, hostNames(use.Name, cellsOf(plan, use.Name)))
		}
	}
	return all
}

// MachinesFor is how many machines a plan needs when each has one host: the client's and
// those of its largest system, for only one system is loaded at a time.
func MachinesFor(plan *experiment.Plan) int {
	most := 0
	for _, hosts := range HostsOf(plan) {
		most = max(most, len(hosts))
	}
	return 1 + most
}

// EmulatesBetween reports whether a plan asks for links, which are then emulated between
// machines; else those that there are, are measured.
func EmulatesBetween(plan *experiment.Plan) bool {
	shaped := slices.ContainsFunc(plan.Cells, func(c experiment.Cell) bool { return c.Link.Shaped() && !attachedUse(plan, c) })
	changes, _ := plansChanges(plan)
	return shaped || changes
}

// Placeable refuses a plan that cannot run on many machines, before any is asked for.
func Placeable(plan *experiment.Plan) error {
	if problems := checkLinksBetween(plan); len(problems) > 0 {
		return &PreconditionError{problems}
	}
	return nil
}

// checkLinksBetween refuses what no links between machines can be.
func checkLinksBetween(plan *experiment.Plan) []Problem {
	switch l := plan.Experiment.Link; {
	case l.Emulator == "netem" || l.IPv6:
		return []Problem{refuse("link.emulator: netem and link.ipv6 are for links on one machine", "leave them out")}
	case l.Emulator == "none" && EmulatesBetween(plan):
		return []Problem{refuse("the experiment asks for links and says link.emulator: none", "leave out one of them")}
	}
	return nil
}

func attachedUse(plan *experiment.Plan, c experiment.Cell) bool {
	return slices.ContainsFunc(plan.Experiment.Systems, func(u experiment.SystemUse) bool {
		return u.Name == c.System && u.Mode == string(system.Attach)
	})
}

// LostError is a machine that is out of reach for good, and that no other takes the place of.
type LostError struct {
	Host string
	Why  error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the machine of host %s is lost, and no other is left to take its place: %v", e.Host, e.Why)
}

// lost is the first of the hosts whose machine is out of reach for good, and why; nil: none is.
func lost(hosts []testbed.Host) (testbed.Host, error) {
	for _, h := range hosts {
		if r, ok := h.(testbed.Remote); ok && r.Lost() != nil {
			return h, r.Lost()
		}
	}
	return nil, nil
}

// replaceLost gives a system hosts on other machines for those that are lost, and reports
// whether there were any: then it is to be started anew. Where no machine is left the run ends.
func (r *run) replaceLost(ctx context.Context, s *site) (replaced bool, err error) {
	for {
		h, why := lost(s.hosts)
		if h == nil && replaced {
			return true, r.connect(ctx)
		}
		if h == nil {
			return false, nil
		}
		r.event("fault", "machine lost", fmt.Sprintf("%s: %v", h.Name(), why), 0)
		another, err := r.bed.AddHost(ctx, h.Name())
		if err != nil {
			err = &LostError{h.Name(), err}
			r.end(err)
			return false, err
		}
		s.hosts[slices.Index(s.hosts, h)] = another
		r.link, replaced = linkState{}, true
		r.say.Note(fmt.Sprintf("host %s is on another machine now: its first is lost (%v)", h.Name(), why))
	}
}
