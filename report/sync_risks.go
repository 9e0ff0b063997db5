package report

import (
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
)

// risks: what the best configuration costs besides time.
func risks(r *Report) []Finding {
	var all []findings.Priced
	for _, t := range r.tunings() {
		if t.best == nil || t.best == t.base {
			continue
		}
		p := findings.Priced{Shown: t.gain.Shown}
		for i := range t.factors {
			f := &t.factors[i]
			l := f.level(t.best)
			if l < 1 || !f.knob() {
				continue
			}
			c := findings.Change{Name: f.words(l), Factor: strings.ToLower(strings.TrimPrefix(f.Path, varyPath)), Value: f.Levels[l].Value, Is: math.NaN(), Was: math.NaN()}
			now, _, a := f.number(l)
			was, _, b := f.number(0)
			if a && b {
				c.Is, c.Was = now, was
			}
			for j := range t.Effects {
				if e := &t.Effects[j]; !e.interaction() && e.factors[0] == i && e.levels[0] == l {
					c.Alone = c.Alone || e.Shown && e.Value < 1
				}
			}
			p.Changes = append(p.Changes, c)
		}
		all = append(all, p)
	}
	return findings.Risks(all)
}
