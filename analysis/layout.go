package analysis

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Layout arranges cells in figures: one factor along the axis, one mark for each system, and a
// panel for each combination of the other factors.
type Layout struct {
	Axis   *Axis    // nil: no suitable factor varies
	Facets []string // paths of the factors of the panels
	Panels []string // their names, in plan order
}

// Axis is the factor drawn from left to right.
type Axis struct {
	Path, Label, Unit string
	Values            []float64 // ascending
	Labels            []string
	Log               bool
}

// layout chooses the axis: the first factor of the view's axes that varies and has only numbers as
// levels.
func (f *Frame) layout() Layout {
	var l Layout
	for _, path := range f.View.Axis {
		if l.Axis = axisOf(f.Cells, path); l.Axis != nil {
			break
		}
	}
	for _, p := range f.FactorPaths() {
		if l.Axis == nil || p != l.Axis.Path {
			l.Facets = append(l.Facets, p)
		}
	}
	for _, c := range f.Cells {
		if p := l.PanelOf(c); !slices.Contains(l.Panels, p) {
			l.Panels = append(l.Panels, p)
		}
	}
	return l
}

// axisOf returns nil if a factor does not vary or has a level that is not a number, like "whole".
func axisOf(cells []*Cell, path string) *Axis {
	a := &Axis{Path: path}
	var levels []Factor
	for _, c := range cells {
		x, ok := c.Factor(path)
		if ok && x.Unit == "" {
			return nil
		}
		if ok && !slices.ContainsFunc(levels, func(y Factor) bool { return y.Number == x.Number }) {
			levels = append(levels, x)
		}
	}
	if len(levels) < 2 {
		return nil
	}
	slices.SortFunc(levels, func(x, y Factor) int { return cmp.Compare(x.Number, y.Number) })
	for _, x := range levels {
		a.Label, a.Unit = x.Label, x.Unit
		a.Values, a.Labels = append(a.Values, x.Number), append(a.Labels, x.Text())
	}
	a.Log = a.Values[0] > 0
	return a
}

// PanelOf names the panel of a cell: "range 1 MiB · delay 20 ms"; empty if there is only one.
func (l Layout) PanelOf(c *Cell) string {
	return c.levels(" · ", func(x Factor) bool { return slices.Contains(l.Facets, x.Path) })
}

// levels lists some of a cell's factors with their levels.
func (c *Cell) levels(between string, which func(Factor) bool) string {
	var names []string
	for _, x := range c.Factors {
		if which(x) {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, between)
}

// At returns the cell's position on the axis; 0 without an axis.
func (l Layout) At(c *Cell) float64 {
	if l.Axis == nil {
		return 0
	}
	x, _ := c.Factor(l.Axis.Path)
	return x.Number
}

// Where names the group of a cell: "concurrency 64, range 1 MiB".
func (l Layout) Where(c *Cell) string {
	axis := c.levels("", func(x Factor) bool { return l.Axis != nil && x.Path == l.Axis.Path })
	return strings.Trim(axis+", "+l.PanelOf(c), ", ")
}

// Name names a cell by its system and group.
func (l Layout) Name(c *Cell) string { return strings.TrimSuffix(c.System+", "+l.Where(c), ", ") }

// valueUnit matches a canonical value: "10MiB", "40ms", "1%".
var valueUnit = regexp.MustCompile(`^([0-9.]+)([A-Za-zµ%].*)$`)

// Text formats the factor's value: "10 MiB", "100 Mbit/s".
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
