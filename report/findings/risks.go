package findings

import "regexp"

// Priced is what the best configuration of one system under one set of conditions
// changes of the default.
type Priced struct {
	Shown   bool // that it gains
	Changes []Change
}

// Change is one knob at another level.
type Change struct {
	Name   string // in words: "storage ram"
	Factor string // its name in lower case, "sync.storage" or that of an option
	Value  string
	// The level and the default as numbers; NaN: they are none.
	Is, Was float64
	Alone   bool // it gains by itself
}

// Risks says what the best configuration costs besides time.
func Risks(all []Priced) []Finding {
	f := Finding{Rule: "risks", Tone: Neutral, Title: "What the best configuration costs",
		Text: "Time is all that was compared. Each change from the default has a price that a run without power cuts, reboots and a public network does not show."}
	var order []string
	price, alone := map[string]string{}, map[string]bool{}
	for _, p := range all {
		if p.Shown && len(p.Changes) > 0 { // else nobody has a reason to pay the price
			f.Tone = Warn
		}
		for _, c := range p.Changes {
			if price[c.Name] == "" {
				order, price[c.Name] = append(order, c.Name), c.price()
			}
			alone[c.Name] = alone[c.Name] || c.Alone
		}
	}
	for _, name := range order {
		text := name + ": " + price[name]
		if !alone[name] {
			text += ". It is not shown to gain anything here"
		}
		f.Evidence = append(f.Evidence, text)
	}
	return withEvidence(f)
}

// price is what a kind of change costs, by the name of its factor and its value.
type price struct {
	factor *regexp.Regexp
	value  *regexp.Regexp // nil: any
	lower  bool           // only where the level is less than the default's
	words  string
}

// prices are known ones; the first that fits counts.
func prices() []price {
	return []price{
		{factor: regexp.MustCompile(`^sync\.storage$`), value: regexp.MustCompile(`ram`), words: "the store lies in memory: it is lost with a reboot, a crash of the machine or a power cut, and the whole chain is fetched again; it takes memory as large as the store, which grows with the chain. Copied to the disk when the node is ended, it outlives a restart of the node and no power cut"},
		{factor: regexp.MustCompile(`(db|store|bolt|sqlite|disk).?sync|fsync|synchronous|durab`), value: regexp.MustCompile(`(?i)^(off|false|no|none|0|never|normal)$`), words: "the store is not made safe with each commit: a power cut or a crash of the machine may leave it damaged, and the whole chain is fetched again"},
		{factor: regexp.MustCompile(`timeout`), lower: true, words: "peers on slow or distant links are given up on before they can answer: with only such peers a node may stall for ever, and what they had sent by then is thrown away"},
		{factor: regexp.MustCompile(`subscri|modules?$|wallet|index`), words: "fewer parts follow the chain: what they would know (the wallet's balance and history, an index of addresses, the renter's and the host's contracts) is not there. The node serves blocks, and not that; switched on later, they go through the whole chain then"},
		{factor: regexp.MustCompile(`interval`), lower: true, words: "peers are asked more often, for as long as the node runs: cheap for one node, and load for its peers when many do it"},
		{factor: regexp.MustCompile(`batch|max.?send|per.?request`), words: "the number of blocks in an answer is the peers' choice as well: on a public network most of them have their own, and a larger answer is lost as a whole when its connection breaks or its time is up"},
		{factor: regexp.MustCompile(`^sync\.peers$`), words: "each peer takes a connection, memory and a share of other people's links; on a public network peers are neither as fast nor as honest as here"},
		{factor: regexp.MustCompile(`commit|flush|cache`), words: "more is held in memory between commits, and more is done again after a crash"},
		{factor: regexp.MustCompile(`inflight|parallel|concurren|connections`), words: "more is under way at a time: more memory, and more load for the peers"},
	}
}

// price is what a change costs; general words where its kind is not known.
func (c *Change) price() string {
	for _, p := range prices() {
		switch {
		case !p.factor.MatchString(c.Factor), p.value != nil && !p.value.MatchString(c.Value), p.lower && c.Is >= c.Was:
			continue
		}
		return p.words
	}
	return "what this gives up was not measured here: see what the option does"
}
