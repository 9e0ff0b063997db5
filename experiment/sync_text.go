package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// chainText is the chain in words.
func (p *Plan) chainText() string {
	if p.Experiment.attached() {
		return "the attached node's own"
	}
	s := p.Experiment.Sync
	return fmt.Sprintf("%s blocks of %s transactions, %s; made by seed %d and kept for further runs", numbers(s.Blocks), numbers(s.Transactions), strings.Join(s.Form, " / "), p.Experiment.Seed)
}

// syncText is the sync in words.
func (p *Plan) syncText() string {
	s := p.Experiment.Sync
	polls := "polls auto"
	if s.Poll != 0 {
		polls = "a poll every " + s.Poll.String()
	}
	if p.Experiment.attached() {
		return "watched until it is in sync; " + polls
	}
	parts := []string{"peers " + numbers(s.Peers), "speeds " + strings.Join(s.Speeds, " / "), "trouble " + faultLevels(s.Trouble), "storage " + strings.Join(s.Storage, " / ")}
	for _, name := range slices.Sorted(maps.Keys(s.Vary)) {
		parts = append(parts, name+" "+s.Vary[name].text())
	}
	parts = append(parts, "faults "+faultLevels(s.Faults))
	if s.Replay {
		parts = append(parts, "each chain validated once without a network where the system can")
	}
	return strings.Join(append(parts, polls), "; ")
}

// text are the values, those that are sets of options with what is in them.
func (v Varied) text() string {
	texts := v.values()
	for i, l := range v.Levels {
		if len(l.Options) < 2 {
			continue
		}
		var set []string
		for _, name := range slices.Sorted(maps.Keys(l.Options)) {
			set = append(set, name+" "+l.Options[name])
		}
		texts[i] += " (" + strings.Join(set, ", ") + ")"
	}
	return strings.Join(texts, " / ")
}

// syncMachineText is what a sync asks of the machine.
func (p *Plan) syncMachineText() string {
	if p.Experiment.attached() {
		return "the node is watched, and nothing is started"
	}
	var each []string
	hosts, store := 0, 0.0
	for _, use := range p.Experiment.Systems {
		peers := 0
		for _, c := range p.Cells {
			if c.System == use.Name {
				peers = max(peers, c.Sync.Peers)
			}
		}
		each = append(each, fmt.Sprintf("%d of %s", 1+peers, use.Name))
		hosts += 1 + peers
	}
	ram := false
	for _, c := range p.Cells {
		ram = ram || c.Sync.Storage == "ram"
		store = max(store, StoreBytes(c.Sync.bytes()))
	}
	text := plural(hosts, "node")
	if len(each) > 1 {
		text += " (" + strings.Join(each, ", ") + ")"
	}
	text += ", the fresh one and its peers, each a process behind a link of its own; a store of up to " + RoughBytes(store) + " for the fresh one, empty at the beginning of each trial"
	if ram {
		text += "; with storage ram it is in memory, on a RAM disk made for the trial"
	}
	return text
}

// syncWarnings are what a reader of the plan of a sync should think about.
func (p *Plan) syncWarnings() (warnings []string) {
	s := p.Experiment.Sync
	if s == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Vary)) {
		if len(s.Vary[name].Levels) == 1 {
			warnings = append(warnings, fmt.Sprintf("sync.vary.%s has one value, which all nodes have: it is no factor; give it another, or write it in `with` of the systems", name))
		}
	}
	if !p.Experiment.attached() {
		for _, use := range p.Experiment.Systems {
			if !slices.ContainsFunc(p.Cells, func(c Cell) bool { return c.System == use.Name && s.isDefault(c.Sync) }) {
				warnings = append(warnings, fmt.Sprintf("no cell of %s has the first value of all knobs (peers, storage, vary), which everything is compared with: the report has no gains; change `where`", use.Name))
			}
		}
	}
	var late, dry []string
	for _, c := range p.Cells {
		for _, f := range syncFaultsOf(c.Sync.Faults) {
			if c.tooLate(f, c.Estimate.Operation) {
				late = append(late, c.ID)
				break
			}
		}
		for _, f := range syncFaultsOf(c.Sync.Faults) {
			if f.Who == WhoPeers && f.Kind != FaultRate && f.For == 0 && f.Of(c.Sync.Peers) == c.Sync.Peers {
				dry = append(dry, c.ID)
				break
			}
		}
	}
	if len(late) > 0 {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) a fault begins when the node is expected to be in sync: then the trial is over, and the fault never happens; let it begin earlier, or at a share such as 50%%", plural(len(late), "cell"), few(late, 6)))
	}
	if len(dry) > 0 {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) all peers are gone for good after a fault: no sync ends well, and the report tells how nodes take it", plural(len(dry), "cell"), few(dry, 6)))
	}
	return warnings
}

// isDefault reports whether a cell has the first value of each knob.
func (s *Sync) isDefault(c *ResolvedSync) bool {
	if c.Peers != s.Peers[0] || c.Storage != s.Storage[0] {
		return false
	}
	for _, v := range s.Vary {
		for name, value := range v.Levels[0].Options {
			if c.Vary[name] != value {
				return false
			}
		}
	}
	return true
}
