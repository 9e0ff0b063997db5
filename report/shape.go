package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shape says how a run's cells lie on paper: one factor along the axis, one
// mark per system, and a panel for each combination of the others.
type shape struct {
	axis   *axis
	facets []string // paths of the factors that make panels
	groups []string // panel keys, in plan order
	names  map[string]string
}

// axis is the factor drawn from left to right.
type axis struct {
	Path, Label, Unit string
	Values            []float64
	Labels            []string
	Log               bool
}

// shapeOf chooses the axis and the panels from the factors that vary. Of those
// that suit the axis, best first, the scenario's load factor leads: "how does it
// hold up under more of this" is the question of every figure.
// facets may change which factors make panels; nil: those that are left.
func shapeOf(cells []*Cell, axes []string, facets func(*shape, []*Cell)) shape {
	var paths []string
	seen := map[string]map[float64]bool{}
	words := map[string]bool{} // factors with a value that is no number: "whole"
	for _, c := range cells {
		for _, f := range c.Factors {
			if seen[f.Path] == nil {
				seen[f.Path] = map[float64]bool{}
				paths = append(paths, f.Path)
			}
			seen[f.Path][f.Number] = true
			words[f.Path] = words[f.Path] || f.Unit == ""
		}
	}
	var s shape
	for _, want := range axes {
		if len(seen[want]) > 1 && !words[want] {
			s.axis = newAxis(cells, want)
			break
		}
	}
	for _, p := range paths {
		if p != "system" && (s.axis == nil || p != s.axis.Path) {
			s.facets = append(s.facets, p)
		}
	}
	if facets != nil {
		facets(&s, cells)
	}
	s.names = map[string]string{}
	for _, c := range cells {
		k := s.panel(c)
		if _, ok := s.names[k]; !ok {
			s.names[k] = s.panelName(c)
			s.groups = append(s.groups, k)
		}
	}
	return s
}

func newAxis(cells []*Cell, path string) *axis {
	a := &axis{Path: path}
	for _, c := range cells {
		f, ok := c.Factor(path)
		if !ok || slices.Contains(a.Values, f.Number) {
			continue
		}
		a.Label, a.Unit = f.Label, f.Unit
		a.Values = append(a.Values, f.Number)
		a.Labels = append(a.Labels, f.Text())
	}
	order := make([]int, len(a.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case a.Values[i] < a.Values[j]:
			return -1
		case a.Values[i] > a.Values[j]:
			return 1
		}
		return 0
	})
	values, labels := make([]float64, len(order)), make([]string, len(order))
	for to, from := range order {
		values[to], labels[to] = a.Values[from], a.Labels[from]
	}
	a.Values, a.Labels = values, labels
	a.Log = values[0] > 0
	return a
}

// panel is the key of the panel that a cell is drawn in.
func (s shape) panel(c *Cell) string {
	var b strings.Builder
	for _, p := range s.facets {
		f, _ := c.Factor(p)
		fmt.Fprintf(&b, "%s=%s;", p, f.Value)
	}
	return b.String()
}

// panelName says in words what a panel holds: "range 1 MiB · delay 20 ms".
func (s shape) panelName(c *Cell) string {
	var words []string
	for _, p := range s.facets {
		if f, ok := c.Factor(p); ok {
			words = append(words, f.Label+" "+f.Text())
		}
	}
	return strings.Join(words, " · ")
}

// at is the cell's place on the axis; 0 without an axis.
func (s shape) at(c *Cell) float64 {
	if s.axis == nil {
		return 0
	}
	f, _ := c.Factor(s.axis.Path)
	return f.Number
}

// where says in words which group a cell is in: "concurrency 64, range 1 MiB".
func (s shape) where(c *Cell) string {
	var words []string
	if s.axis != nil {
		if f, ok := c.Factor(s.axis.Path); ok {
			words = append(words, f.Label+" "+f.Text())
		}
	}
	if n := s.names[s.panel(c)]; n != "" {
		words = append(words, n)
	}
	return strings.Join(words, ", ")
}

// named is a cell in words: its system, and where it is.
func (s shape) named(c *Cell) string {
	if where := s.where(c); where != "" {
		return c.System + ", " + where
	}
	return c.System
}

// Factor is one of the factors that tell the cell apart; false: it has none of that path.
func (c *Cell) Factor(path string) (Factor, bool) {
	if path == ratioPath && c.plan.Disseminate != nil {
		v := seederRatio(c.plan.Disseminate)
		return Factor{Path: path, Label: "seeders", Value: strconv.FormatFloat(100*v, 'g', 3, 64) + " % of nodes", Number: v}, true
	}
	for _, f := range c.Factors {
		if f.Path == path {
			return f, true
		}
	}
	return Factor{Path: path}, false
}

// number and unit of a canonical value: "10MiB", "40ms", "1%".
var valueUnit = regexp.MustCompile(`^([0-9.]+)([A-Za-zµ%].*)$`)

// Text is the factor's value for people: "10 MiB", "100 Mbit/s".
func (f Factor) Text() string {
	m := valueUnit.FindStringSubmatch(f.Value)
	if m == nil {
		return f.Value
	}
	if f.Unit == "bit/s" && strings.HasSuffix(m[2], "bit") {
		m[2] += "/s"
	}
	return m[1] + " " + m[2]
}
