package experiment

import (
	"fmt"
	"reflect"
	"slices"
)

// sync reads what is not typed by the format itself, and checks what a sync needs
// beside its section.
func (d *decoder) sync(e *Experiment) {
	d.vary(e)
	d.faultsAbout(e, "sync.faults", WhoPeers, WhoNode)
	d.watched(e)
}

// unwatched are the keys that say what is done to a node.
var unwatched = []string{"blocks", "transactions", "form", "peers", "speeds", "trouble", "storage", "faults", "vary"}

// watched asks of an attached node only what can be asked of it: it follows the
// chain that it has, once.
func (d *decoder) watched(e *Experiment) {
	i := slices.IndexFunc(e.Systems, func(use SystemUse) bool { return use.Mode == "attach" })
	if i < 0 || !d.ok("systems") {
		return
	}
	use := e.Systems[i]
	if len(e.Systems) > 1 {
		path := fmt.Sprintf("systems[%d]", i)
		d.fail(path, d.first(path+".mode", path+".use", path), "make an experiment of its own of it", "system `%s` is attached, and can only be watched alone", use.Name)
		return
	}
	refuse := func(path string) {
		if n := d.at[path]; n != nil && d.ok(path) {
			d.fail(path, n, "take it away: the node follows its own chain, from its own peers, over its own links", "`%s` cannot be had of system `%s`, which is attached and can only be watched", path, use.Name)
		}
	}
	for _, key := range unwatched {
		refuse("sync." + key)
	}
	for _, key := range tableOf(reflect.TypeFor[Link]()).keys() {
		refuse("link." + key)
	}
	for _, c := range []struct {
		key string
		has int
		may int
	}{{"repetitions", e.Repetitions.Max, 1}, {"warmup", e.Warmup.Trials, 0}} {
		if n := d.at[c.key]; n != nil && d.ok(c.key) && c.has > c.may {
			d.fail(c.key, n, "take the key away", "system `%s` is attached, and what it has of its chain stays: it can be watched once", use.Name)
		}
	}
	e.Repetitions.Max, e.Warmup.Trials = 1, 0
	e.Sync.Replay = false
}

// attached reports whether the one system of the experiment is.
func (e *Experiment) attached() bool { return len(e.Systems) == 1 && e.Systems[0].Mode == "attach" }

// checkSync refuses cells that cannot be had.
func (c *combination) checkSync(cell *Cell, s *Sync) *cellError {
	if c.e.attached() {
		// What the node follows, from whom, and where it keeps it are unknown.
		*s = Sync{Storage: "disk", Poll: s.Poll}
		return nil
	}
	const leave = "add peers, or leave the cell out with `where`"
	useless, all := 0, 0
	for _, t := range s.Trouble {
		n := t.Of(s.Peers)
		all += n
		if t.Manner() != "" {
			useless += n
		}
		if up := cell.Link.UpRate(); t.Rate != 0 && !s.Speeds.Given() && up != 0 && t.Rate >= up {
			return c.impossible("sync.trouble", "give a lower rate", "peers `%s` are not slower than their links, which have %s", t, up)
		}
	}
	switch {
	case all > s.Peers:
		return c.impossible("sync.trouble", leave, "`%s` is about %s, and there is only %d", s.Trouble, plural(all, "peer"), s.Peers)
	case useless >= s.Peers:
		return c.impossible("sync.trouble", leave, "`%s` leaves no peer that has the chain", s.Trouble)
	}
	return c.checkFaults(cell, map[string]int{WhoPeers: s.Peers, WhoNode: 1})
}
