package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// checkLinks gathers the checks of links that were asked for alike.
func (r *Report) checkLinks(in *input) {
	trials := map[int64]*Trial{}
	for i := range r.Trials {
		trials[r.Trials[i].ID] = &r.Trials[i]
	}
	type kind struct {
		from, to, emulator, congestion string
		rtt, rate, loss                float64
	}
	type gathered struct {
		link            Link
		rtts, rates, ls []float64
	}
	all := map[kind]*gathered{}
	var order []kind
	for _, l := range in.links {
		k := kind{l.From, l.To, l.Emulator, l.Congestion, l.WantRTT, l.WantRate, l.WantLoss}
		g := all[k]
		if g == nil {
			where := ""
			if t := trials[l.Trial]; t != nil {
				where = linkFactors(t.Info)
			}
			g = &gathered{link: Link{From: l.From, To: l.To, Where: where, Emulator: l.Emulator, Congestion: l.Congestion, WantRTT: Num(l.WantRTT), WantRate: Num(l.WantRate), WantLoss: Num(l.WantLoss),
				RTTWorst: Num(l.RTT), RateWorst: Num(l.Rate), RTTP99: unknown, Lateness: unknown, Tolerance: Num(l.Tolerance)}}
			all[k], order = g, append(order, k)
		}
		v := &g.link
		v.Checks++
		if !l.OK {
			v.Off++
			if l.Why != "" && !slices.Contains(v.Why, l.Why) && len(v.Why) < 5 {
				v.Why = append(v.Why, l.Why)
			}
		}
		g.rtts, g.rates = append(g.rtts, l.RTT), append(g.rates, l.Rate)
		if !math.IsNaN(l.Loss) {
			g.ls = append(g.ls, l.Loss)
		}
		v.RTTWorst, v.RateWorst = farther(v.RTTWorst, l.RTT, l.WantRTT), farther(v.RateWorst, l.Rate, l.WantRate)
		v.RTTP99, v.Lateness = highest(v.RTTP99, l.RTTP99), highest(v.Lateness, l.Lateness)
	}
	for _, k := range order {
		g := all[k]
		g.link.RTT, g.link.Rate, g.link.Loss = Num(middle(g.rtts)), Num(middle(g.rates)), unknown
		if len(g.ls) > 0 {
			g.link.Loss = Num(middle(g.ls))
		}
		r.Links = append(r.Links, g.link)
	}
	slices.SortStableFunc(r.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.WantRate, b.WantRate), cmp.Compare(a.WantRTT, b.WantRTT), cmp.Compare(a.From, b.From))
	})
}

// farther is the value that is farther from what was wanted.
func farther(have Num, v, want float64) Num {
	if want == 0 {
		// Nothing was asked for: the least is the one to know.
		return min(have, Num(v))
	}
	if math.Abs(v-want) > math.Abs(float64(have)-want) {
		return Num(v)
	}
	return have
}

func highest(have Num, v float64) Num {
	if math.IsNaN(v) || Num(v) < have {
		return have
	}
	return Num(v)
}

// linkFactors are the factors of a cell that concern its link.
func linkFactors(c *Cell) string {
	s := ""
	for _, f := range c.Factors {
		if len(f.Path) > 5 && f.Path[:5] == "link." {
			if s != "" {
				s += ", "
			}
			s += fmt.Sprintf("%s %s", f.Label, f.Text())
		}
	}
	if s == "" {
		return "all"
	}
	return s
}
