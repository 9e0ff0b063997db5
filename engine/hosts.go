package engine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// nodesOf returns how many nodes a cell has, each on its own host behind its own access
// link: those of a swarm, or the fresh node, which is the first, and its peers. 0: the
// system has one host.
func nodesOf(cell experiment.Cell) int {
	switch {
	case cell.Disseminate != nil:
		return cell.Disseminate.Nodes
	case cell.Sync != nil:
		return 1 + cell.Sync.Peers
	}
	return 0
}

// nodes returns the number of nodes of the largest of these cells of one system.
func nodes(cells []experiment.Cell) int {
	return int(largest(cells, func(c experiment.Cell) float64 { return float64(nodesOf(c)) }))
}

// hostNames returns the names of a system's hosts for these cells: one for each node.
func hostNames(system string, cells []experiment.Cell) []string {
	n := nodes(cells)
	if n == 0 {
		return []string{system}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", system, i+1)
	}
	return names
}

// HostsOf returns the hosts of each started system of a plan, without the client's.
func HostsOf(plan *experiment.Plan) (all [][]string) {
	for _, use := range plan.Experiment.Systems {
		if !use.Attached() {
			all = append(all, hostNames(use.Name, plan.CellsOf(use.Name)))
		}
	}
	return all
}

// GeneratorHosts returns the hosts of the load generator's processes, except the first, which is on
// the client's host.
func GeneratorHosts(clients int) (names []string) {
	for i := 2; i <= clients; i++ {
		names = append(names, fmt.Sprintf("client-%d", i))
	}
	return names
}

// MachinesFor returns how many machines a plan needs if each has one host: one for the client, those
// of its largest system (only one system is loaded at a time), and those of additional load generators.
func MachinesFor(plan *experiment.Plan, clients int) int {
	most := 0
	for _, hosts := range HostsOf(plan) {
		most = max(most, len(hosts))
	}
	return max(1, clients) + most
}

// plansChanges reports whether a plan changes links during trials, which needs emulation, and
// whether it needs an emulator that can shape single pairs of hosts.
func plansChanges(plan *experiment.Plan) (changes, pairs bool) {
	for _, c := range plan.Cells {
		cuts := slices.ContainsFunc(c.Faults(), func(f experiment.Fault) bool { return f.Kind() == experiment.FaultCut })
		changes, pairs = changes || c.ChangesLinks(), pairs || cuts || c.Link.Regions != nil
	}
	return changes, pairs
}

// EmulatesBetween reports whether a plan asks for links that have to be emulated between
// machines; otherwise the real ones are measured.
func EmulatesBetween(plan *experiment.Plan) bool {
	shaped := slices.ContainsFunc(plan.Cells, func(c experiment.Cell) bool {
		return c.Link.Shaped() && !plan.Experiment.System(c.System).Attached()
	})
	changes, _ := plansChanges(plan)
	return shaped || changes
}

// ByKernel reports whether netem emulates the links between machines.
func ByKernel(plan *experiment.Plan) bool {
	return EmulatesBetween(plan) && plan.Experiment.Link.Emulator == link.NetemDiscipline
}

// Placeable returns what prevents a plan from running on several machines, whichever they are.
func Placeable(plan *experiment.Plan, systems []system.System, clients int) []Problem {
	return slices.Concat(checkLinksBetween(plan, clients), checkOutside(plan, systems), checkLocal(plan, systems))
}

// checkOutside refuses systems that can be started only in network namespaces: hosts on other machines have
// namespaces only if links are emulated.
func checkOutside(plan *experiment.Plan, systems []system.System) (all []Problem) {
	for _, use := range plan.Experiment.Systems {
		if why := infoOf(systems, use).ReachesOut; why != "" && !use.Attached() && !EmulatesBetween(plan) {
			all = append(all, Problem{Name: "systems", Blocking: true,
				What: use.Name + " is started only in network namespaces, since " + why,
				Hint: "ask for a link, which makes namespaces on other machines, too: --set link.rate=100Mbit"})
		}
	}
	return all
}

// checkLocal refuses what exists only on the user's machine: data files, and secrets in its environment.
func checkLocal(plan *experiment.Plan, systems []system.System) (all []Problem) {
	var files []string
	for _, c := range plan.Cells {
		files = append(files, c.Data.Directory+c.Data.Trace)
	}
	if a := plan.Experiment.Retrieve.Replays(); a != nil {
		files = append(files, a.Log)
	}
	for _, file := range slices.Compact(files) {
		if file != "" && !filepath.IsAbs(file) {
			all = append(all, Problem{Name: "data-readable", Blocking: true,
				What: file + " is on this machine, and does not travel to others",
				Hint: "put it on the first machine, a log on both, and name it by its absolute path there; or run " +
					"without --on"})
		}
	}
	for _, use := range plan.Experiment.Systems {
		for _, o := range infoOf(systems, use).Options {
			variable := cmp.Or(use.With[o.Name], o.Default)
			if _, set := os.LookupEnv(variable); o.Secret && set && use.Attached() {
				all = append(all, Problem{Name: "systems", Blocking: true,
					What: fmt.Sprintf("%s: option %s is in the environment variable %s of this machine, which does "+
						"not travel to others", use.Name, o.Name, variable),
					Hint: "unset it, if the endpoint can be reached without or it is set on the first machine; or " +
						"run without --on"})
			}
		}
	}
	return all
}

// checkLinksBetween refuses links that are impossible between machines.
func checkLinksBetween(plan *experiment.Plan, clients int) []Problem {
	switch l := plan.Experiment.Link; {
	case l.IPv6:
		return []Problem{refuse("link.ipv6 is for links on one machine", "leave it out")}
	case clients > 1 && attaches(plan) && EmulatesBetween(plan): // additional generators are in namespaces
		return []Problem{refuse("with emulated links, the load generators on other machines do not reach an attached "+
			"system", "run without --clients, or attached systems in an experiment of their own")}
	}
	return nil
}

// lostHost returns the first of the hosts whose machine can no longer be reached, and why; nil: none.
func lostHost(hosts []testbed.Host) (testbed.Host, error) {
	for _, h := range hosts {
		if r, ok := h.(testbed.Remote); ok && r.Lost() != nil {
			return h, r.Lost()
		}
	}
	return nil, nil
}

// replaceLost replaces the lost hosts of a system by hosts on other machines, and reports whether
// one of them had a node: then the system must be restarted. If no machine is left, the run ends.
func (r *run) replaceLost(ctx context.Context, s *site) (replaced bool, err error) {
	for moved := false; ; moved = true {
		h, why := lostHost(s.all())
		if h == nil && moved {
			return replaced, r.connect(ctx)
		}
		if h == nil {
			return false, nil
		}
		r.event("fault", "machine lost", fmt.Sprintf("%s: %v", h.Name(), why), 0)
		another, err := r.bed.AddHost(ctx, h.Name())
		if err != nil {
			err = fmt.Errorf("the machine of host %s is lost, and no other is left to take its place: %w", h.Name(),
				err)
			r.end(err)
			return false, err
		}
		if i := slices.Index(s.hosts, h); i >= 0 {
			s.hosts[i], replaced = another, true
		} else {
			s.generators[slices.Index(s.generators, h)] = another
			for i, g := range r.generators { // it may have been replaced before, for another system
				if g.Name() == another.Name() {
					r.generators[i] = another
				}
			}
		}
		r.say.Note(fmt.Sprintf("host %s is on another machine now: its first is lost (%v)", h.Name(), why))
	}
}
