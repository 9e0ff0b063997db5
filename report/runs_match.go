package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// whereOptions say where a system is, not how it works: the same experiment on
// another build of it differs in them.
var whereOptions = []string{"binary", "port", "url", "urls", "server_url", "bucket", "prefix"}

// settings are all that decides about a cell's results: how the system is set up,
// the resolved link, data and scenario, and the limits of an operation. Times are
// in seconds, as in the plan.
func (r *Report) settings(c *Cell, plan *rawPlan) map[string]string {
	all := map[string]string{}
	add := func(prefix string, v map[string]any) {
		for _, p := range flatten(nil, prefix, v) {
			all[p.Key] = p.Value
		}
	}
	raw, err := json.Marshal(c.plan)
	var cell map[string]any
	if err != nil || json.Unmarshal(raw, &cell) != nil {
		cell = nil // a plan that was read can be written
	}
	for _, key := range []string{"id", "system", "baseline", "factors", "estimate"} {
		delete(cell, key)
	}
	add("", cell)
	for _, s := range plan.Experiment.Systems {
		if s.Name != c.System {
			continue
		}
		all["system.use"], all["system.mode"] = s.Use, s.Mode
		for key, v := range s.With {
			if !slices.Contains(whereOptions, key) {
				all["system.with."+key] = v
			}
		}
		for key, v := range s.Override {
			all["system.override."+key] = v
		}
	}
	for _, key := range []string{"deadline", "stall"} {
		if v, ok := plan.Experiment.Limits[key]; ok {
			all["limits."+key] = fmt.Sprint(v)
		}
	}
	return all
}

// rawPlan is what the settings of cells are in, beside the cells.
type rawPlan struct {
	Experiment struct {
		Systems []struct {
			Name, Use, Mode string
			With, Override  map[string]string
		}
		Limits map[string]any
		Warmup json.RawMessage
	}
}

func (r *Report) rawPlan() *rawPlan {
	var p rawPlan
	if err := json.Unmarshal(r.Plan, &p); err != nil {
		return &rawPlan{} // it was read once already
	}
	return &p
}

// cellKey is a cell with its settings.
type cellKey struct {
	cell     *Cell
	settings map[string]string
}

func (r *Report) keys() []cellKey {
	plan := r.rawPlan()
	var keys []cellKey
	for _, c := range r.cells() {
		keys = append(keys, cellKey{c, r.settings(c, plan)})
	}
	return keys
}

// same is equal for cells that can be compared.
func (k cellKey) same() string {
	var b strings.Builder
	b.WriteString(strconv.Quote(k.cell.System))
	for _, path := range slices.Sorted(maps.Keys(k.settings)) {
		b.WriteString(" " + path + "=" + strconv.Quote(k.settings[path]))
	}
	return b.String()
}

// called is equal for cells of the same system and the same levels of the factors.
func (k cellKey) called() string { return strconv.Quote(k.cell.System) + " " + k.cell.Group }

// match finds the cells that runs have in common: those with the same settings,
// and beside them those that are called alike and differ in settings, which are
// compared when that is asked for.
func (c *RunComparison) match(unlike bool) {
	base := c.base.keys()
	rows := make([]ComparedCell, len(base))
	matched := make([]bool, len(base))
	for i, k := range base {
		rows[i] = ComparedCell{System: k.cell.System, Where: c.base.shape.where(k.cell), Factors: k.cell.Factors,
			Metrics: map[string]ComparedMetric{}, base: k.cell, news: make([]*Cell, len(c.news))}
	}
	for n, r := range c.news {
		news := r.keys()
		taken := make([]bool, len(news))
		pair := func(name func(cellKey) string, do func(i, j int)) {
			at := map[string]int{}
			for j, k := range news {
				if !taken[j] {
					at[name(k)] = j
				}
			}
			for i, k := range base {
				if j, ok := at[name(k)]; ok && rows[i].news[n] == nil {
					do(i, j)
				}
			}
		}
		differ := make([]bool, len(base))
		pair(cellKey.same, func(i, j int) {
			rows[i].news[n], matched[i], taken[j] = news[j].cell, true, true
			if len(rows[i].Factors) < len(news[j].cell.Factors) { // what the base run does not vary
				rows[i].Where, rows[i].Factors = r.shape.where(news[j].cell), news[j].cell.Factors
			}
		})
		pair(cellKey.called, func(i, j int) {
			taken[j], differ[i] = true, true
			c.Unlike = append(c.Unlike, UnlikeCell{System: rows[i].System, Where: rows[i].Where, New: c.New[n].Dir,
				Settings: changed(base[i].settings, news[j].settings), Compared: unlike})
			if unlike {
				rows[i].news[n], matched[i] = news[j].cell, true
			}
		})
		for i := range base {
			if rows[i].news[n] == nil && !differ[i] {
				c.Only = append(c.Only, OnlyCell{rows[i].System, rows[i].Where, c.Base.Dir, c.New[n].Dir})
			}
		}
		for j, k := range news {
			if !taken[j] {
				c.Only = append(c.Only, OnlyCell{k.cell.System, r.shape.where(k.cell), c.New[n].Dir, c.Base.Dir})
			}
		}
	}
	for i := range rows {
		if matched[i] {
			c.Cells = append(c.Cells, rows[i])
		}
	}
}

// changed are the settings that differ.
func changed(base, other map[string]string) []Setting {
	all := maps.Clone(base)
	maps.Copy(all, other)
	var differ []Setting
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if base[path] != other[path] {
			differ = append(differ, Setting{path, base[path], other[path]})
		}
	}
	return differ
}
