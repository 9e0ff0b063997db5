package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// drawnFigure is a figure as the page's script gets it, without what it would get
// twice: what all panels have in common stands once, and a figure that shows the
// panels of another names that one.
type drawnFigure struct {
	Figure
	Panels []Panel                    `json:"panels"`
	Shared map[string]json.RawMessage `json:"shared,omitempty"` // parts of each panel's specification
	Like   string                     `json:"like,omitempty"`   // the figure whose panels it shows
}

// figuresData are figures for the page's script, in a form that cannot end its
// element: json.Marshal escapes <, > and &.
func figuresData(figures []Figure) ([]byte, error) {
	all := make([]drawnFigure, 0, len(figures))
	for i, f := range figures {
		d := drawnFigure{Figure: f, Panels: []Panel{}}
		for _, other := range figures[i+1:] {
			if len(f.Panels) > 1 && len(other.Panels) == len(f.Panels) && &other.Panels[0] == &f.Panels[0] {
				d.Like = other.ID
			}
		}
		if d.Like == "" {
			var err error
			if d.Panels, d.Shared, err = sharedParts(f.Panels); err != nil {
				return nil, fmt.Errorf("report: figure %s: %w", f.ID, err)
			}
		}
		all = append(all, d)
	}
	return json.Marshal(all)
}

// sharedParts takes out of panels what all of them have, and what no eye could
// tell from less: digits.
func sharedParts(panels []Panel) ([]Panel, map[string]json.RawMessage, error) {
	var slim []Panel
	parts := map[string][]byte{}
	common := map[string]bool{}
	for i, p := range panels {
		s := spec{}
		for key, v := range p.Spec {
			if key == "data" {
				v = fewerDigits(v)
			}
			raw, err := json.Marshal(v)
			if err != nil {
				return nil, nil, err
			}
			s[key] = json.RawMessage(raw)
			if i == 0 {
				parts[key], common[key] = raw, len(panels) > 1
			} else if !bytes.Equal(parts[key], raw) {
				common[key] = false
			}
		}
		for key := range common {
			if _, ok := p.Spec[key]; !ok {
				common[key] = false
			}
		}
		slim = append(slim, Panel{Title: p.Title, Spec: s})
	}
	shared := map[string]json.RawMessage{}
	for key, is := range common {
		if !is {
			continue
		}
		shared[key] = parts[key]
		for _, p := range slim {
			delete(p.Spec, key)
		}
	}
	return slim, shared, nil
}

// figureDigits is how many digits a number of a figure's data has on the page: a
// pixel is a thousandth of a figure. Tables have them all.
const figureDigits = 7

// fewerDigits rounds the numbers in a figure's data.
func fewerDigits(v any) any {
	switch v := v.(type) {
	case float64:
		short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', figureDigits, 64), 64)
		if err != nil {
			return v
		}
		return short
	case Num:
		if !v.Known() {
			return v
		}
		return fewerDigits(float64(v))
	case spec:
		c := make(spec, len(v))
		for key, x := range v {
			c[key] = fewerDigits(x)
		}
		return c
	case []spec:
		c := make([]spec, len(v))
		for i, x := range v {
			c[i], _ = fewerDigits(x).(spec)
		}
		return c
	}
	return v
}

// maxPlanCells is from how many cells on the page shows a plan without them: they
// follow from the experiment.
const maxPlanCells = 100

// planText is the plan for people to read.
func planText(raw []byte) (text, left string) {
	var top map[string]json.RawMessage
	var cells []json.RawMessage
	if json.Unmarshal(raw, &top) == nil && json.Unmarshal(top["cells"], &cells) == nil && len(cells) > maxPlanCells {
		delete(top, "cells")
		if less, err := json.Marshal(top); err == nil {
			raw, left = less, fmt.Sprintf("The %d cells, all combinations of its levels, are left out here; plan.json has them.", len(cells))
		}
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return "", ""
	}
	return b.String(), left
}
