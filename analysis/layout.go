package analysis

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Layout says how cells lie on paper: one factor along the axis, one mark for each
// system, and a panel for each combination of the other factors.
type Layout struct {
	Axis   *Axis    // nil: nothing that suits an axis varies
	Facets []string // paths of the factors that make panels
	Panels []Panel  // in plan order
}

// Axis is the factor drawn from left to right.
type Axis struct {
	Path, Label, Unit string
	Values            []float64 // ascending
	Labels            []string
	Log               bool
}

// Panel is one combination of the facets' levels.
type Panel struct {
	Key  string
	Name string // "range 1 MiB · delay 20 ms"; empty: there is one panel
}

// layoutOf chooses the axis: the first of axes that varies and whose levels are numbers.
func layoutOf(cells []*Cell, axes []string) Layout {
	var paths []string
	levels := map[string]map[float64]bool{}
	word := map[string]bool{} // factors with a level that is no number: "whole"
	for _, c := range cells {
		for _, x := range c.Factors {
			if levels[x.Path] == nil {
				levels[x.Path] = map[float64]bool{}
				paths = append(paths, x.Path)
			}
			levels[x.Path][x.Number] = true
			word[x.Path] = word[x.Path] || x.Unit == ""
		}
	}
	var l Layout
	for _, want := range axes {
		if len(levels[want]) > 1 && !word[want] {
			l.Axis = axisOf(cells, want)
			break
		}
	}
	for _, p := range paths {
		if p != "system" && (l.Axis == nil || p != l.Axis.Path) {
			l.Facets = append(l.Facets, p)
		}
	}
	for _, c := range cells {
		p := Panel{l.PanelOf(c), l.panelName(c)}
		if !slices.Contains(l.Panels, p) {
			l.Panels = append(l.Panels, p)
		}
	}
	return l
}

func axisOf(cells []*Cell, path string) *Axis {
	a := &Axis{Path: path}
	var levels []Factor
	for _, c := range cells {
		x, ok := c.Factor(path)
		if ok && !slices.ContainsFunc(levels, func(y Factor) bool { return y.Number == x.Number }) {
			levels = append(levels, x)
		}
	}
	slices.SortFunc(levels, func(x, y Factor) int { return cmp.Compare(x.Number, y.Number) })
	for _, x := range levels {
		a.Label, a.Unit = x.Label, x.Unit
		a.Values, a.Labels = append(a.Values, x.Number), append(a.Labels, x.Text())
	}
	a.Log = a.Values[0] > 0
	return a
}

// PanelOf is the key of the panel that a cell is drawn in.
func (l Layout) PanelOf(c *Cell) string {
	var key []string
	for _, p := range l.Facets {
		x, _ := c.Factor(p)
		key = append(key, p+"="+x.Value)
	}
	return strings.Join(key, ";")
}

func (l Layout) panelName(c *Cell) string {
	var names []string
	for _, p := range l.Facets {
		if x, ok := c.Factor(p); ok {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, " · ")
}

// At is the cell's place on the axis; 0 without an axis.
func (l Layout) At(c *Cell) float64 {
	if l.Axis == nil {
		return 0
	}
	x, _ := c.Factor(l.Axis.Path)
	return x.Number
}

// Where names the group of a cell: "concurrency 64, range 1 MiB".
func (l Layout) Where(c *Cell) string {
	var names []string
	if l.Axis != nil {
		if x, ok := c.Factor(l.Axis.Path); ok {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	if n := l.panelName(c); n != "" {
		names = append(names, n)
	}
	return strings.Join(names, ", ")
}

// Name names a cell: its system, and its group.
func (l Layout) Name(c *Cell) string {
	if where := l.Where(c); where != "" {
		return c.System + ", " + where
	}
	return c.System
}

// valueUnit is a canonical value: "10MiB", "40ms", "1%".
var valueUnit = regexp.MustCompile(`^([0-9.]+)([A-Za-zµ%].*)$`)

// Text is the factor's value for people: "10 MiB", "100 Mbit/s".
func (x Factor) Text() string {
	m := valueUnit.FindStringSubmatch(x.Value)
	if m == nil {
		return x.Value
	}
	if x.Unit == "bit/s" && strings.HasSuffix(m[2], "bit") {
		m[2] += "/s"
	}
	return m[1] + " " + m[2]
}
