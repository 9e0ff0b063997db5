package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/option"
)

// Sync is the section of the scenario sync: a fresh node gets a chain of blocks from its peers. The
// first value of a list is the default, with which the others are compared.
type Sync struct {
	// Blocks of the chain, which is built once and kept.
	Blocks int `json:"blocks,omitempty" default:"3000" min:"2" max:"1000000" label:"blocks"`
	// Transactions in each block.
	Transactions int `json:"transactions,omitempty" default:"10" min:"0" max:"2000" label:"transactions"`
	// Version of blocks and transactions, for systems that have both.
	Form string `json:"form,omitempty" default:"v2" enum:"v1,v2" label:"form"`
	// Peers that have the chain, each a process behind its own link.
	Peers int `json:"peers,omitempty" default:"1" min:"1" max:"64" label:"peers"`
	// Rates at which the peers send.
	Speeds Speeds `json:"speeds,omitzero" zero:"link" label:"speeds"`
	// Peers of little use. A list of groups is one level; a list of lists (or none) is a factor.
	Trouble Troubles `json:"trouble,omitempty" zero:"none" label:"trouble"`
	// Store of the fresh node: the disk, or a RAM disk made for the trial.
	Storage string `json:"storage,omitempty" default:"disk" enum:"disk,ram" label:"storage"`
	// What goes wrong, and when.
	Faults Faults `json:"faults,omitempty" zero:"none" label:"faults"`
	// Options of the systems as factors: each with its values (the first is the default), or a name of your own
	// with named sets of options.
	Vary map[string]Varied `json:"vary,omitempty"`
	// of a cell: the options of the system chosen by Vary, as in SystemUse.With
	Options map[string]string `json:"options,omitempty" yaml:"-"`
	Network []string          `json:"network,omitempty" yaml:"-"` // names in Options that do not affect a replay
	// Validate the chain locally, without a network, for the load line.
	Replay bool `json:"replay" default:"true"`
	// Interval at which the fresh node is asked for its progress.
	Poll Duration `json:"poll" default:"auto" zero:"auto" min:"5ms" max:"10s"`
}

// Speeds are the rates at which the peers of a fresh node send; by default, those of their links.
type Speeds struct {
	// Median of a log-normal distribution of rates.
	Lognormal BitRate `json:"lognormal,omitempty" one:"true" needs:"spread"`
	// Geometric standard deviation: with 3, two thirds of the peers are within a factor of 3 of the median.
	Spread float64 `json:"spread,omitempty" min:"1" max:"100" needs:"lognormal"`
	// Rates, assigned in turn.
	List []BitRate `json:"list,omitempty" one:"true"`
}

// Given reports whether rates other than those of the links are set.
func (v Speeds) Given() bool { return v.String() != "link" }

func (v Speeds) String() string {
	switch {
	case v.Lognormal > 0:
		return "lognormal " + v.Lognormal.String() + " x" + strconv.FormatFloat(v.Spread, 'f', -1, 64)
	case len(v.List) > 0:
		return "list " + strings.ReplaceAll(joined(v.List), ";", "")
	}
	return "link"
}

// tail is the probability that is cut off at either end of a lognormal distribution: values are
// within 3.1 standard deviations of the median.
const tail = 0.001

// Draw returns the rates of n peers, in order; 0 is the rate of the link. uniform returns numbers
// from 0 up to but not including 1. If rates are drawn, it is called once for each peer, so that
// the first peers have the same rates whatever n is.
func (v Speeds) Draw(n int, uniform func() float64) []BitRate {
	rates := make([]BitRate, n)
	for i := range rates {
		switch {
		case v.Lognormal > 0:
			u := min(1-tail, max(tail, uniform()))
			normal := math.Sqrt2 * math.Erfinv(2*u-1)
			rates[i] = max(1, BitRate(math.Round(float64(v.Lognormal)*math.Pow(v.Spread, normal))))
		case len(v.List) > 0:
			rates[i] = v.List[i%len(v.List)]
		}
	}
	return rates
}

// BadPeers is a group of peers of little use.
type BadPeers struct {
	// Peers that take connections and answer nothing.
	Silent NodeCount `json:"silent,omitempty" one:"true"`
	// Peers with another chain.
	Stranger NodeCount `json:"stranger,omitempty" one:"true"`
	// Peers that send at another rate.
	Slow NodeCount `json:"slow,omitempty" one:"true" needs:"rate"`
	// Rate of slow peers.
	Rate BitRate `json:"rate,omitempty" needs:"slow"`
}

// Manner returns the manner of the peers, as in package system; empty: they differ only in their rate.
func (t BadPeers) Manner() string {
	switch {
	case t.Silent != "":
		return "silent"
	case t.Stranger != "":
		return "stranger"
	}
	return ""
}

func (t BadPeers) count() NodeCount { return cmp.Or(t.Silent, t.Stranger, t.Slow) }

// Of returns how many of n peers the group has, which may be more than n.
func (t BadPeers) Of(n int) int { return t.count().Of(n) }

func (t BadPeers) String() string {
	if t.Rate > 0 {
		return string(t.Slow) + " at " + t.Rate.String()
	}
	return string(t.count()) + " " + t.Manner()
}

// Troubles are all groups of peers of little use; no peer is in two of them.
type Troubles []BadPeers

func (ts Troubles) String() string { return joined(ts) }

func (ts *Troubles) check() error {
	seen := map[string]bool{}
	for _, t := range *ts {
		key := t.Manner() + t.Rate.String()
		if seen[key] {
			return mistake("write one group with the sum", "two groups of the same peers")
		}
		seen[key] = true
	}
	return nil
}

// checkSync returns an error for a cell that cannot be executed.
func (c *combination) checkSync(cell *Cell, s *Sync) *Error {
	all := 0
	for _, t := range s.Trouble {
		all += t.Of(s.Peers)
	}
	switch {
	case all > s.Peers:
		return c.impossible("sync.trouble", "add peers", "`%s` is about %d peers, of %d", s.Trouble, all, s.Peers)
	case s.honest() <= 0:
		return c.impossible("sync.trouble", "add peers", "`%s` leaves no peer that has the chain", s.Trouble)
	}
	return c.checkFaults(cell, map[string]int{WhoPeers: s.Peers, WhoNode: 1})
}

// Assumptions of the estimate of a sync. They are rough, and rather too high than too low. Sizes
// and times are those of Sia's blocks and signed payments (core v0.21, a machine with two cores,
// November 2026), rounded.
const (
	// blockBytes and transactionBytes are sizes on the wire.
	blockBytes       = 175.0
	transactionBytes = 550.0
	// blockWork and transactionWork are the times that a node takes to validate and store a block
	// and a transaction, in seconds.
	blockWork       = 0.0002
	transactionWork = 0.0002
	// makeWork is the time to make the chain, as a multiple of that work.
	makeWork = 3.0
	// followWork is the time of a node that gets the chain from others, as a multiple of that work.
	// It allows for a subscriber to the blocks: the option that decides about it is not known here.
	followWork = 2.0
	// startFollow is the time from the start of a fresh node to its first block, in seconds: by
	// default, systems ask their peers every five seconds.
	startFollow = 6.5
	// aroundSync is the time that a trial takes besides the sync, in seconds: checking the peers,
	// changing the links, making and removing the store.
	aroundSync = 1.5
)

// work returns the time to validate and store the chain, in seconds.
func (s *Sync) work() float64 {
	return float64(s.Blocks) * (blockWork + float64(s.Transactions)*transactionWork)
}

// bytes returns the size of the chain on the wire.
func (s *Sync) bytes() float64 {
	return float64(s.Blocks) * (blockBytes + float64(s.Transactions)*transactionBytes)
}

// honest returns how many peers have the chain.
func (s *Sync) honest() int {
	n := s.Peers
	for _, t := range s.Trouble {
		if t.Manner() != "" {
			n -= t.Of(s.Peers)
		}
	}
	return n
}

// estimateSync estimates the time and the bytes of one trial: the waits of a fresh node, then the
// longer of the transfer of the chain over all links at once and the work on it.
func (e *Experiment) estimateSync(c *Cell) CellEstimate {
	s := c.Sync
	est := CellEstimate{Bytes: s.bytes(), Operation: startFollow + math.Max(followWork*s.work(), c.syncLine())}
	took := est.Operation + c.faultSeconds(e.Limits.Stall)
	est.Seconds = math.Min(took, e.Limits.Deadline.Seconds()) + aroundSync
	return est
}

// syncLine returns the time in which the peers that have the chain can send it to the fresh node,
// in seconds, if all rates that are drawn are at their median; 0 if nothing is limited.
func (c *Cell) syncLine() float64 {
	s := c.Sync
	rates := s.Speeds.Draw(s.honest(), func() float64 { return 0.5 })
	next := 0
	for _, t := range s.Trouble {
		for range t.Of(s.Peers) * boolInt(t.Rate != 0) {
			rates[next], next = t.Rate, next+1
		}
	}
	up := 0.0
	for _, r := range rates {
		up += unlimited(float64(cmp.Or(r, c.Link.UpRate())))
	}
	return s.bytes() * 8 / tcpPayload(min(up, unlimited(float64(c.Link.DownRate()))))
}

// Upper estimate of the size of a node's store, from the size of its chain on the wire. The store
// holds the blocks, their supplements, the state and, for a subscriber, an index of all addresses,
// which is the larger part: 10,000 blocks of ten payments, 56 MB on the wire, took 86 MB of
// consensus.db and 272 MB of walletd.sqlite3 and its log. 2000 blocks of the first form, 11.6 MB,
// took 117 MB, because it keeps all unspent outputs and the tree of elements, too. Databases grow
// in steps and are never compacted, so a small chain takes a larger share.
const (
	storeFactor = 11
	storeFloor  = 144 << 20
)

// A RAM disk is larger than its store, because a full one ends a trial.
const (
	ramFactor = 1.25
	ramMargin = 64 << 20
)

// StoreBytes estimates the maximum size of a node's store, with an index, from the size of the
// chain on the wire. It is for chains that are not made yet, and for systems that do not report it.
func StoreBytes(chain float64) float64 { return storeFloor + storeFactor*chain }

// RAMDiskBytes returns the size of a RAM disk for a store of at most that many bytes.
func RAMDiskBytes(store float64) float64 { return ramMargin + ramFactor*store }

// varyPath is the path of the options that are factors.
const varyPath = "sync.vary"

// bundleType is the type of a factor whose values are names of sets of options.
const bundleType = "options"

// Varied is a factor that consists of one option of the systems, or of several that change
// together.
type Varied struct {
	Type   string        `json:"type"` // of the values, as in option.Option; "options" for names of sets of options
	Levels []VariedLevel `json:"levels"`
	// Network lists the options that affect only the network or the peers.
	Network []string `json:"network,omitempty"`
}

// VariedLevel is one level of a Varied.
type VariedLevel struct {
	Value   string            `json:"value"`   // as in the file, canonical; the name of a set of options
	Options map[string]string `json:"options"` // set for the systems, as in SystemUse.With
}

// values returns the texts of the levels.
func (v Varied) values() []string {
	return each(v.Levels, func(l VariedLevel) string { return l.Value })
}

// axis converts the factor to an axis.
func (v Varied) axis(name string) axis {
	f := optionField(name, v.Type, nil)
	f.label = name
	if f.typ.Kind() == reflect.String {
		f.enum = v.values()
	}
	return axis{join(varyPath, name), f, each(v.values(), f.constant)}
}

// vary reads the options of the systems that are factors.
func (d *decoder) vary(e *Experiment) {
	n := d.at[varyPath]
	if n == nil || e.Sync == nil {
		return
	}
	e.Sync.Vary = map[string]Varied{}
	d.owners = map[string]string{}
	for _, factor := range n.entries {
		name, path := factor.key.text, join(varyPath, factor.key.text)
		d.at[path] = factor.value
		d.refuse(!nameRE.MatchString(name), path, nameHint, "%q cannot be the name of a factor", name)
		items, v := elements(factor.value, field{}), Varied{}
		d.refuse(len(items) == 0, path, "give at least one value, or take the key away", "`%s` has no values", path)
		for i, item := range items {
			p, failed := fmt.Sprintf("%s[%d]", path, i), len(d.errs)
			d.at[p] = item
			level := d.variedLevel(e, name, item, p, &v)
			same := func(l VariedLevel) bool { return l.Value == level.Value || maps.Equal(l.Options, level.Options) }
			switch {
			case len(d.errs) > failed:
			case len(level.Options) == 0 || level.Value == "" || item.kind == mappingNode && !nameRE.MatchString(level.Value):
				d.fail(p, "a value, or a name with options: `- short: {sync_interval: 500ms}`", "`%s`: no value", path)
			case slices.ContainsFunc(v.Levels, same):
				d.fail(p, "a factor has each of its levels once", "`%s` has the value %s twice", path, level.Value)
			default:
				v.Levels = append(v.Levels, level)
			}
		}
		if slices.ContainsFunc(items, func(item *node) bool { return item.kind == mappingNode }) {
			v.Type = typeOfAll(v.values())
		}
		e.Sync.Vary[name] = v
	}
}

// variedLevel reads one level of a factor: a value of the option with the factor's name, or a name
// with options.
func (d *decoder) variedLevel(e *Experiment, name string, item *node, path string, v *Varied) VariedLevel {
	level, set := VariedLevel{item.text, map[string]string{}}, []entry{{item.scalar(name), item}}
	bare := item.kind != mappingNode || len(item.entries) != 1
	if !bare {
		level.Value, set = item.entries[0].key.text, item.entries[0].value.entries
	}
	for _, o := range set {
		spec, opt := d.factorOption(e, name, o.key.text, path)
		if opt == nil {
			continue
		}
		if text, ok := d.option(spec, opt, o.value, path); ok {
			level.Options[opt.Name] = text
		}
		if bare {
			v.Type = opt.Type
			level.Value, _, _ = readOption(opt, item.text)
		}
		if opt.Network && !slices.Contains(v.Network, opt.Name) {
			v.Network = append(v.Network, opt.Name)
		}
	}
	return level
}

// typeOfAll returns the type of option for which all texts are canonical values, so that sets named
// 2s, 10s and 2m are ordered; otherwise "options".
func typeOfAll(texts []string) string {
	for _, typ := range []string{"int", "duration", "size"} {
		f := optionField("", typ, nil)
		if !slices.ContainsFunc(texts, func(text string) bool {
			v := reflect.New(f.typ).Elem()
			return f.parse(text, v) != nil || f.text(v) != text
		}) {
			return typ
		}
	}
	return bundleType
}

// factorOption returns the option for a factor if all systems have it and allow that, and nil
// otherwise.
func (d *decoder) factorOption(e *Experiment, name, key, path string) (spec *SystemSpec, opt *option.Option) {
	for _, use := range e.Systems {
		spec = d.cat.find(use.Use)
		o := spec.option(key)
		switch {
		case o == nil:
			d.fail(path, spec.nearOption(key), "system `%s` has no option `%s`", spec.Name, key)
		case opt != nil && opt.Type != o.Type:
			d.fail(path, "make two experiments", "option `%s` is not the same in all systems", key)
		case o.Secret:
			d.fail(path, "give it in `with`", "option `%s` is a secret and cannot be a factor", key)
		case d.owners[key] != "" && d.owners[key] != name:
			d.fail(path, "let one of them have it", "option `%s` is in the factor `%s`, too", key, d.owners[key])
		default:
			opt = o
			continue
		}
		return nil, nil
	}
	d.owners[key] = name
	return spec, opt
}

// options returns the options that the combination sets for the systems, and the names of those
// that affect only the network or the peers.
func (c *combination) options() (all map[string]string, network []string) {
	for i, a := range c.axes {
		name, is := strings.CutPrefix(a.path, varyPath+".")
		if !is {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, c.e.Sync.Vary[name].Levels[c.levels[i]].Options)
		network = append(network, c.e.Sync.Vary[name].Network...)
	}
	slices.Sort(network)
	return all, network
}
