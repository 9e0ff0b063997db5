package report

import "fmt"

// syncTexts are the tables of the terminal: configurations, and what the knobs do.
func (r *Report) syncTexts() []textTable {
	if len(r.Syncs) == 0 {
		return nil
	}
	var all []textTable
	for _, tu := range r.tunings() {
		t := textTable{head: []string{"configuration", "serves after", "", "", "first block", "blocks/s", "of line", "served", "valid"},
			right: []bool{false, true, false, true, true, true, true, true, true}, drop: map[int]int{2: 2, 4: 1, 5: 2, 6: 1}, most: map[int]int{0: 44}}
		t.head[3] = "change"
		if p := r.place(tu); p != "" {
			t.below = append(t.below, "Above: "+p+".")
		}
		for _, s := range tu.cells {
			c := s.cell
			row := []string{r.configured(c), s.timeEntry(r).Text, "", "", "–", "–", "–", "", fmt.Sprintf("%d/%d", c.Valid, c.Planned)}
			if s.time.Median.Known() {
				row[2] = plusMinus(s.time, "s")
			}
			if q, ok := c.Ratios["sync_time"]; ok && q.Value.Known() {
				row[3] = signed(float64(q.Value)) + " %"
				if q.Value > 3 {
					row[3] = show(float64(q.Value), "×")
				}
				if !q.Shown {
					row[3] = "~ " + row[3]
				}
			}
			for col, key := range map[int]string{4: "first_block", 5: "block_rate", 6: "line_share"} {
				if m, ok := c.Metrics[key]; ok {
					row[col] = map[string]string{"first_block": show(float64(s.timeOf(key).Median), "s"), "block_rate": digits(float64(m.Median), 3), "line_share": percent(float64(m.Median))}[key]
				}
			}
			if tu.Unfinished > 0 {
				row[7] = s.servedEntry().Text
			}
			if c.Invalid+c.Failed > 0 {
				row[8] = "!" + row[8]
			}
			if tu.best == c && !c.Baseline {
				row[0] = "* " + r.configured(c)
			}
			t.rows = append(t.rows, row)
		}
		if tu.best != nil && tu.best != tu.base {
			t.below = append(t.below, "* the best found.")
		}
		all = append(all, t)
	}
	for i := range r.Tunings {
		if e := r.effectTexts(&r.Tunings[i]); len(e.rows) > 0 {
			all = append(all, e)
		}
	}
	return all
}

// effectTexts are the effects for the terminal: of single knobs, and the pairs that
// are shown; over all conditions these alone.
func (r *Report) effectTexts(tu *Tuning) textTable {
	t := textTable{head: []string{"effect", "ratio", "interval", "p (Holm)"}, right: []bool{false, true, false, true}, drop: map[int]int{3: 1}, most: map[int]int{0: 60}}
	if p := r.place(tu); p != "" {
		t.below = []string{"Above: " + p + "."}
	}
	for j := range tu.Effects {
		e := &tu.Effects[j]
		if e.interaction() && !e.Shown || !e.interaction() && tu.All || !e.Value.Known() {
			continue
		}
		ratio, interval := show(float64(e.Value), "×"), "–"
		if e.Lo.Known() && e.Hi.Known() {
			interval = digits(float64(e.Lo), 3) + "–" + digits(float64(e.Hi), 3)
		}
		if !e.Shown {
			ratio = "~ " + ratio
		}
		if e.Survivors {
			t.below = append(t.below, e.name()+": "+e.Warn+".")
		}
		t.rows = append(t.rows, []string{e.name(), ratio, interval, chance(e.PHolm).Text})
	}
	return t
}
