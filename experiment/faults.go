package experiment

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// NodeCount is a number of nodes, or a share of them, rounded up to a whole node; empty: all.
type NodeCount string

// mostNodes is the largest number of nodes that an experiment may name.
const mostNodes = 256

func (p *NodeCount) parse(s string) error {
	var share Fraction
	n, err := strconv.ParseUint(s, 10, 16) // which accepts no sign
	switch {
	case err == nil && n >= 1 && n <= mostNodes && len(s) <= 3:
		*p = NodeCount(strconv.FormatUint(n, 10))
	case strings.HasSuffix(s, "%") && share.parse(s) == nil && share > 0:
		*p = NodeCount(share.String())
	default:
		return notA("NodeCount", s, fmt.Sprintf("a number from 1 to %d such as `2`, or a share such as `25%%`", mostNodes))
	}
	return nil
}

// Of returns the number of nodes out of n: the given number, which may be larger than n, or the
// share.
func (p NodeCount) Of(n int) int {
	if p == "" {
		return n
	}
	if count, err := strconv.Atoi(string(p)); err == nil {
		return count
	}
	var share Fraction
	_ = share.parse(string(p))
	return share.Of(n)
}

// Moment is a share of the progress, or a time after the beginning.
type Moment struct {
	Timed bool
	Share Fraction
	After Duration // if Timed
}

func (w *Moment) parse(s string) error {
	*w = Moment{Timed: !strings.HasSuffix(s, "%")}
	switch {
	case w.Timed && w.After.parse(s) != nil:
		return mistake("write it like `50%` or `10s`", "%q is neither a share nor a duration", s)
	case w.Timed:
		return nil
	}
	err := w.Share.parse(s)
	if err == nil && w.Share == 1 {
		err = mistake("at most 99.9%", "at 100%% everything is over")
	}
	return err
}

func (w Moment) String() string {
	if w.Timed {
		return w.After.String()
	}
	return w.Share.String()
}

// MarshalText returns the text that parse reads.
func (w Moment) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText sets w from a text.
func (w *Moment) UnmarshalText(b []byte) error { return w.parse(string(b)) }

// FaultKind is a kind of fault.
type FaultKind string

const (
	FaultCrash FaultKind = "crash" // SIGKILL to the nodes' processes
	FaultCut   FaultKind = "cut"   // a partition between the chosen nodes and all others
	FaultRate  FaultKind = "rate"  // the nodes' links get another rate
)

// Nodes that the faults of a sync affect. Those of a swarm affect seeders, leechers or nodes.
const (
	WhoPeers = "peers"
	WhoNode  = "node" // the fresh one
)

// Fault is one fault, with its end if it has one.
type Fault struct {
	// Kill the processes of these nodes.
	Crash string `json:"crash,omitempty" one:"true" enum:"seeders,leechers,nodes,peers,node"`
	// Cut these nodes off from all others.
	Cut string `json:"cut,omitempty" one:"true" enum:"seeders,leechers,nodes,peers,node"`
	// Give links another rate, in both directions.
	Rate BitRate `json:"rate,omitempty" one:"true"`
	// Whose links. Default in a swarm: all nodes.
	Whose string `json:"of,omitempty" needs:"rate" enum:"seeders,leechers,nodes,peers,node"`
	// How many of them. Default: all.
	Count NodeCount `json:"count,omitempty"`
	// When it begins: at this share of the content of all leechers (or of the chain), or so long after the release.
	At Moment `json:"at" required:"true"`
	// After which it is undone: processes start again, a cut heals, a rate returns. Absent: never.
	For Duration `json:"for,omitempty" min:"1ns"`
	// Killed nodes start again without their data.
	WithoutData bool `json:"without_data,omitempty" needs:"crash,for"`
}

// Kind returns the kind of the fault.
func (f Fault) Kind() FaultKind {
	switch {
	case f.Crash != "":
		return FaultCrash
	case f.Cut != "":
		return FaultCut
	}
	return FaultRate
}

// Who returns the group of nodes that the fault affects.
func (f Fault) Who() string { return cmp.Or(f.Crash, f.Cut, f.Whose, "nodes") }

func (f *Fault) check() error {
	if f.Count == "100%" { // normalize, so that equal faults have one text
		f.Count = ""
	}
	if f.Whose == "nodes" {
		f.Whose = ""
	}
	who := f.Who()
	switch {
	case who == WhoNode && f.Count != "":
		return mistake("take `count` away", "there is one node")
	case f.WithoutData && who != "leechers" && who != WhoNode:
		return mistake("crash leechers or the fresh node without data",
			"%s would come back without anything to give", who)
	case who == WhoNode && f.Kind() != FaultRate && f.For == 0:
		return mistake("add `for: 2s`", "the fresh node never goes on")
	}
	return nil
}

// String describes the fault in words, as in records and tables.
func (f Fault) String() string {
	who := f.Who()
	switch {
	case f.Count == "1":
		who = "1 " + strings.TrimSuffix(who, "s")
	case strings.HasSuffix(string(f.Count), "%"):
		who = string(f.Count) + " of " + who
	case f.Count != "":
		who = string(f.Count) + " " + who
	}
	text := string(f.Kind()) + " " + who
	if f.Kind() == FaultRate {
		text = strings.TrimSuffix("rate "+f.Rate.String()+" of "+who, " of nodes")
	}
	text += " at " + f.At.String()
	if f.For > 0 {
		text += " for " + f.For.String()
	}
	if f.WithoutData {
		text += " without data"
	}
	return text
}

// Faults are the faults of a trial.
type Faults []Fault

func (fs Faults) String() string { return joined(fs) }

// joined joins the texts of several values.
func joined[T fmt.Stringer](all []T) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(each(all, T.String), "; ")
}

func (fs *Faults) check() error {
	cuts, lasting := 0, false
	for _, f := range *fs {
		if f.Cut != "" && f.Cut != WhoNode && f.Cut != WhoPeers {
			cuts++
			lasting = lasting || f.For == 0
		}
	}
	if cuts > 1 && lasting {
		return mistake("let each heal before the next begins: add `for: 20s`",
			"the swarm is cut more than once, and one of the cuts never heals")
	}
	return nil
}

// Faults returns the faults of the cell, in any scenario.
func (c *Cell) Faults() []Fault {
	switch {
	case c.Disseminate != nil:
		return c.Disseminate.Faults
	case c.Sync != nil:
		return c.Sync.Faults
	}
	return nil
}

const giveRate = "give `link` a rate, such as 100Mbit"

// checkFaults returns an error if a cell cannot have its faults. groups holds the sizes of its
// groups of nodes.
func (c *combination) checkFaults(cell *Cell, groups map[string]int) *Error {
	path, swarm := c.e.Scenario+".faults", cell.Disseminate != nil
	for _, f := range cell.Faults() {
		n, is := groups[f.Who()]
		switch {
		case !is:
			return c.impossible(path, "one of "+strings.Join(sortedKeys(groups), ", "), "there are no %s", f.Who())
		case f.Count.Of(n) > n:
			return c.impossible(path, "name fewer, or a share such as 50%", "`%s` is about more than the %d there are", f,
				n)
		case swarm && f.Kind() == FaultCut && f.Count.Of(n) == groups["nodes"]:
			return c.impossible(path, "cut fewer", "`%s` cuts off all %d nodes", f, n)
		case swarm && f.Kind() == FaultRate && cell.Link.unlimited():
			return c.impossible(path, giveRate, "`%s` changes a rate that is unlimited", f)
		}
	}
	return nil
}

// faultSeconds returns the time that faults add to a trial: the duration of each fault or, for one
// without an end, the stall. A rate without an end adds nothing.
func (c *Cell) faultSeconds(stall Duration) (more float64) {
	for _, f := range c.Faults() {
		switch {
		case f.For > 0:
			more += f.For.Seconds()
		case f.Kind() != FaultRate:
			more += stall.Seconds()
		}
	}
	return more
}
