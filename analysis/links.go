package analysis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Link summarises all checks of one kind of link.
type Link struct {
	From       string   `json:"from"`
	To         string   `json:"to"`
	Where      string   `json:"where"` // the link factors of the cells that use it
	Emulator   string   `json:"emulator"`
	Congestion string   `json:"congestion"`
	Checks     int      `json:"checks"`
	Off        int      `json:"off"`
	WantRTT    Num      `json:"want_rtt"`
	RTT        Num      `json:"rtt"`       // median over checks, seconds
	RTTP99     Num      `json:"rtt_p99"`   // highest
	WantRate   Num      `json:"want_rate"` // TCP payload, bit/s; 0: unlimited
	Rate       Num      `json:"rate"`      // median over checks
	WantLoss   Num      `json:"want_loss"`
	Loss       Num      `json:"loss"`         // null: not measured
	Lateness   Num      `json:"lateness_p99"` // highest lateness of the emulator's packets
	Tolerance  Num      `json:"tolerance"`
	Why        []string `json:"why,omitempty"`
}

// addLinks groups the checks of links with the same expected values.
func (f *Frame) addLinks() {
	checks := map[record.LinkCheck][]record.LinkCheck{}
	var order []record.LinkCheck // expected values
	for _, l := range f.Checks {
		k := record.LinkCheck{From: l.From, To: l.To, Emulator: l.Emulator, Congestion: l.Congestion,
			WantRTT: l.WantRTT, WantRate: l.WantRate, WantLoss: l.WantLoss}
		if checks[k] == nil {
			order = append(order, k)
		}
		checks[k] = append(checks[k], l)
	}
	for _, k := range order {
		all := checks[k]
		v := Link{From: k.From, To: k.To, Emulator: k.Emulator, Congestion: k.Congestion, Checks: len(all),
			WantRTT: Num(k.WantRTT), WantRate: Num(k.WantRate),
			WantLoss: Num(k.WantLoss), RTTP99: Unknown, Lateness: Unknown, Tolerance: Num(all[0].Tolerance)}
		if t, ok := find(f.Trials, func(t *Trial) bool { return t.ID == all[0].Trial }); ok {
			v.Where = cmp.Or(t.Info.levels(", ", func(x Factor) bool { return strings.HasPrefix(x.Path, "link.") }), "all")
		}
		var rtts, rates, losses []float64
		for _, l := range all {
			if !l.OK {
				v.Off++
				if l.Why != "" && !slices.Contains(v.Why, l.Why) && len(v.Why) < 5 {
					v.Why = append(v.Why, l.Why)
				}
			}
			rtts, rates = append(rtts, l.RTT), append(rates, l.Rate)
			if !math.IsNaN(l.Loss) {
				losses = append(losses, l.Loss)
			}
			v.RTTP99, v.Lateness = highest(v.RTTP99, l.RTTP99), highest(v.Lateness, l.Lateness)
		}
		v.RTT, v.Rate, v.Loss = Num(stats.Median(rtts)), Num(stats.Median(rates)), Num(stats.Median(losses))
		f.Links = append(f.Links, v)
	}
	slices.SortStableFunc(f.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.WantRate, b.WantRate), cmp.Compare(a.WantRTT, b.WantRTT),
			cmp.Compare(a.From, b.From))
	})
}

// RealLinks reports whether the run used real links between machines.
func (r *Result) RealLinks() bool {
	return slices.ContainsFunc(r.Links, func(l Link) bool { return l.Emulator == record.RealLink })
}

func highest(have Num, v float64) Num {
	if math.IsNaN(v) || Num(v) < have {
		return have
	}
	return Num(v)
}

// Line is a physical limit at one position of the axis.
type Line struct {
	Panel  string
	System string // set if the systems' lines differ
	X, Y   float64
}

// sameLine is the largest ratio of the systems' load lines that are drawn as one.
const sameLine = 1.05

// LoadLines returns the medians, over the valid trials of each group, of the metric of a load
// line. All systems share one line unless theirs differ by more than 5 %.
func (f *Frame) LoadLines(metric string) []Line {
	own := f.linesBy(metric, true)
	for _, a := range own {
		if slices.ContainsFunc(own, func(b Line) bool { return a.Panel == b.Panel && a.X == b.X && a.Y > b.Y*sameLine }) {
			return own
		}
	}
	return f.linesBy(metric, false)
}

func (f *Frame) linesBy(metric string, system bool) []Line {
	values := map[Line][]float64{}
	var all []Line
	for _, c := range f.Cells {
		l := Line{Panel: f.Layout.PanelOf(c), X: f.Layout.At(c)}
		if system {
			l.System = c.System
		}
		for _, r := range f.Of(c, metric) {
			if !(r.Value > 0) || r.Censored {
				continue
			}
			if values[l] == nil {
				all = append(all, l)
			}
			values[l] = append(values[l], r.Value)
		}
	}
	for i, l := range all {
		all[i].Y = stats.Median(values[l])
	}
	slices.SortStableFunc(all, func(a, b Line) int { return cmp.Compare(a.X, b.X) })
	return all
}

// MachineLine returns what this machine would reach in a cell if all of its CPUs worked only for
// these trials, median over trials; Unknown if CPU usage was not recorded. m is the time or rate
// of a whole transfer.
func (f *Frame) MachineLine(c *Cell, m record.Metric) Num {
	var all []float64
	for _, t := range f.Trials {
		v, has := t.Metrics[m.Key]
		share := MachineShare(t.Trial)
		if t.Info != c || !has || !(v > 0) || !(share > 0) || !t.ValidBut(record.ReasonMachineLimited) {
			continue
		}
		if m.Better == record.Higher {
			share = 1 / share
		}
		all = append(all, v*share)
	}
	return Num(stats.Median(all))
}

// ValidBut reports whether a trial is valid, or would be without these reasons.
func (t *Trial) ValidBut(reasons ...string) bool {
	return t.State == record.Done && !t.Warmup &&
		!slices.ContainsFunc(t.Invalid, func(why string) bool { return !slices.Contains(reasons, why) })
}

// Pair is a named value of the environment.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// AboutSystem returns what a system reported about itself when it was started or attached, from the
// run's metadata.
func AboutSystem(meta map[string]string, system string) map[string]string {
	var about map[string]map[string]any
	_ = json.Unmarshal([]byte(meta["systems"]), &about) // an older run has none
	said := map[string]string{}
	for key, v := range about[system] {
		said[key] = fmt.Sprint(v)
	}
	return said
}

// environment flattens the run's metadata: a value that is a JSON object becomes one pair for
// each of its leaves, such as "systems.nginx.version".
func (f *Frame) environment() []Pair {
	pairs, meta := []Pair{}, f.Meta
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if key == record.KeyPlan { // it is of the file, and differs from the plan's own hash
			continue
		}
		var v map[string]any
		if strings.HasPrefix(meta[key], "{") && json.Unmarshal([]byte(meta[key]), &v) == nil {
			if key == "environment" {
				key = "" // its keys speak for themselves
			}
			pairs = flatten(pairs, key, v)
			continue
		}
		pairs = append(pairs, Pair{key, meta[key]})
	}
	return pairs
}

func flatten(pairs []Pair, path string, v map[string]any) []Pair {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		name := strings.TrimPrefix(path+"."+key, ".")
		switch x := v[key].(type) {
		case map[string]any:
			pairs = flatten(pairs, name, x)
		case nil:
		default:
			if s := fmt.Sprint(x); s != "" {
				pairs = append(pairs, Pair{name, s})
			}
		}
	}
	return pairs
}
