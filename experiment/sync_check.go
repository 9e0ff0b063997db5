package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// sync reads what is not typed by the format itself, and checks what a sync needs
// beside its section.
func (d *decoder) sync(e *Experiment) {
	d.followers(e)
	d.vary(e)
	d.emulatedSync(e)
}

// followers refuses systems whose nodes follow no chain, and asks of attached
// ones only what can be asked of them.
func (d *decoder) followers(e *Experiment) {
	for i, use := range e.Systems {
		path := fmt.Sprintf("systems[%d]", i)
		spec := d.cat.find(use.Use)
		if spec == nil || !d.ok(path) {
			continue
		}
		if n := d.at[path+".override"]; n != nil {
			d.fail(path+".override", n, "make two experiments, or a factor", "system `%s` cannot have settings of its own: in the scenario sync they are the same for all", use.Name)
		}
		if !spec.Follows {
			var can []string
			for _, s := range d.cat {
				if s.Follows {
					can = append(can, s.Name)
				}
			}
			d.fail(path+".use", d.first(path+".use", path), "systems that can: "+strings.Join(can, ", "), "system `%s` does not follow a chain, which the scenario sync needs", spec.Name)
		}
	}
}

// emulatedSync refuses what needs an emulated link where there shall be none.
func (d *decoder) emulatedSync(e *Experiment) {
	if e.Link.Emulator != "none" || !d.ok("link", "sync") {
		return
	}
	s := e.Sync
	for _, c := range []struct {
		key   string
		needs bool
	}{
		{"speeds", slices.ContainsFunc(s.Speeds, func(text string) bool { return text != "link" })},
		{"trouble", slices.ContainsFunc(s.Trouble, func(text string) bool {
			return slices.ContainsFunc(troubleOf(text), func(t Trouble) bool { return t.Rate != 0 })
		})},
		{"faults", slices.ContainsFunc(s.Faults, func(text string) bool {
			return slices.ContainsFunc(syncFaultsOf(text), func(f Fault) bool { return f.Kind != FaultCrash })
		})},
	} {
		if path := "sync." + c.key; c.needs {
			d.fail(path, d.at[path], "take the key away, or let the emulator be auto", "`%s` changes emulated links, but `link.emulator` is none", path)
		}
	}
}

// troubleOf and syncFaultsOf are those of a text that was read before.
func troubleOf(text string) []Trouble {
	trouble, err := ParseTrouble(text)
	if err != nil {
		return nil
	}
	return trouble
}

func syncFaultsOf(text string) []Fault {
	faults, err := ParseSyncFaults(text)
	if err != nil {
		return nil
	}
	return faults
}

func speedsOf(text string) Speeds {
	speeds, err := ParseSpeeds(text)
	if err != nil {
		return Speeds{Kind: "link"}
	}
	return speeds
}

// checkSync refuses cells that cannot be had.
func (c *combination) checkSync(cell *Cell, s *ResolvedSync) *cellError {
	impossible := func(key, hint, format string, args ...any) *cellError {
		return c.fault("sync."+key, "impossible cell ("+c.name()+"): "+fmt.Sprintf(format, args...), hint)
	}
	const leave = "add peers, or leave the cell out with `where`"
	useless, all := 0, 0
	for _, t := range troubleOf(s.Trouble) {
		n := t.Of(s.Peers)
		all += n
		if t.Manner != "" {
			useless += n
		}
		if t.Rate != 0 && s.Speeds == "link" && cell.Link.Rate != 0 && t.Rate >= cell.Link.Rate {
			return impossible("trouble", "give a lower rate", "peers `%s` are not slower than their links, which have %s", t, cell.Link.Rate)
		}
	}
	switch {
	case all > s.Peers:
		return impossible("trouble", leave, "`%s` is about %d of %s", s.Trouble, all, plural(s.Peers, "peer"))
	case useless >= s.Peers:
		return impossible("trouble", leave, "`%s` leaves none of %s that has the chain", s.Trouble, plural(s.Peers, "peer"))
	}
	for _, f := range syncFaultsOf(s.Faults) {
		switch deadline := c.e.Limits.Deadline; {
		case f.Who == WhoPeers && f.Of(s.Peers) > s.Peers:
			return impossible("faults", "name at most "+fmt.Sprint(s.Peers)+", or a share such as `50% of peers`, or leave the cell out with `where`",
				"the fault `%s` needs %d peers, and there is only %s", f, f.Count, plural(s.Peers, "peer"))
		case math.IsNaN(f.Part) && deadline > 0 && f.At >= deadline.Std():
			return impossible("faults", "begin it earlier, or raise limits.deadline",
				"the fault `%s` begins when the deadline of the node is over, which is %s after its start (limits.deadline)", f, deadline)
		}
	}
	return nil
}
