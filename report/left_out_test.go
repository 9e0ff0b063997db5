package report

import (
	"slices"
	"strings"
	"testing"
)

// drawnFigures are the titles of what is drawn, the first screen's included.
func (r *Report) drawnFigures() (titles []string) {
	for _, f := range append(slices.Clone(r.Figures), *firstOf(r)) {
		if len(f.Panels) > 0 {
			titles = append(titles, f.Title)
		}
	}
	return titles
}

func firstOf(r *Report) *Figure {
	if r.Hero == nil {
		return &Figure{}
	}
	return r.Hero
}

func (r *Report) whyLeftOut(title string) string {
	for _, l := range r.left {
		if l.Title == title {
			return l.Why
		}
	}
	return ""
}

// Two polls make no course: a figure of them would be an empty frame.
func TestTwoPollsMakeNoFigure(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.every, s.objects = 2./60, 60, 40
	s.job = nil
	r := s.report(t)
	if n := r.Loads[0].Polls.N; n != 2 {
		t.Fatalf("%d polls", n)
	}
	for _, title := range []string{"API latency", "Funds", "Data uploaded"} {
		if why := r.whyLeftOut(title); !strings.Contains(why, "at least 3 points") || !strings.Contains(why, "2 polls") || slices.Contains(r.drawnFigures(), title) {
			t.Errorf("%s is left out because %q; drawn: %v", title, why, r.drawnFigures())
		}
	}
	i := slices.IndexFunc(r.loadSections(), func(s Section) bool { return s.ID == "left-out" })
	if i < 0 || len(r.loadSections()[i].Table.Rows) != len(r.left) {
		t.Errorf("the page does not say what is left out: %+v", r.left)
	}
	s.hours, s.objects = 10, 400
	if r := s.report(t); len(r.left) > 0 || !slices.Contains(r.drawnFigures(), "API latency against bandwidth") {
		t.Errorf("left out of a long test: %+v", r.left)
	}
}

// Where no byte comes there is no bandwidth to hold a latency against.
func TestNothingIsHeldAgainstNoBandwidth(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.collect = 0.4, 1, true // the one object comes after half an hour
	r := s.report(t)
	drawn := r.drawnFigures()
	if why := r.whyLeftOut("API latency against bandwidth"); !strings.Contains(why, "no bandwidth") || slices.Contains(drawn, "API latency against bandwidth") || !slices.Contains(drawn, "API latency") {
		t.Errorf("left out because %q; drawn: %v", why, drawn)
	}
	if why := r.whyLeftOut("Absolute bandwidth"); !strings.Contains(why, "all of it is 0") {
		t.Errorf("absolute bandwidth is left out because %q", why)
	}
	for _, a := range r.loadAnswers() {
		if strings.Contains(a.Text, "bandwidth") {
			t.Errorf("the answer of polls alone is %q", a.Text)
		}
	}
}

// A part of a line that has one point is drawn as a point.
func TestLonePointIsSeen(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 10, 400
	r := s.report(t)
	l := &r.Loads[0]
	line := []stretch{{0, 60, 1, 1, 1, 0}, {60, 120, 2, 2, 2, 0}, {600, 660, 3, 3, 3, 1}}
	f := r.draw(overTime{id: "x", title: "x", unit: "s", curves: []curve{{load: l, name: "x", colour: "red", points: line}}})
	rows := f.Panels[0].Spec["data"].(spec)["values"].([]spec)
	for i, row := range rows {
		if (row["alone"] != nil) != (i == 2) {
			t.Errorf("point %d: %v", i, row)
		}
	}
}
