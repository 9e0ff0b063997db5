package experiment

import (
	"strings"
	"testing"
)

func TestLevelReadsWhatTheExperimentDoesNotHave(t *testing.T) {
	e := &Experiment{Scenario: "overhead", Overhead: &Overhead{Operation: Axis[string]{"put", "get"}},
		Link: Link{Delay: Axis[Duration]{0, 5e6}}, Data: Data{Size: Axis[Bytes]{1000}}}
	for _, c := range []struct {
		path, text string
		number     float64
		value      string
	}{
		{"data.size", "300kB", 300e3, "300kB"},
		{"link.delay", "60ms", 0.06, "60ms"},
		{"overhead.operation", "get", 0, "get"},
	} {
		f, err := e.Level(c.path, c.text)
		if err != nil || f.Number != c.number || f.Value != c.value || f.Path != c.path {
			t.Errorf("%s=%s: %+v, %v", c.path, c.text, f, err)
		}
	}
	for _, c := range []struct{ path, text, want string }{
		{"data.sizes", "1kB", "did you mean `data.size`"},
		{"link.delay", "60", "60ms"},
		{"overhead.operation", "gte", "did you mean `get`"},
		{"retrieve.concurrency", "4", "is no factor of this experiment"},
	} {
		if _, err := e.Level(c.path, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q in it", c.path, c.text, err, c.want)
		}
	}
	if got := e.Levels("link.delay"); len(got) != 2 || got[1].Value != "5ms" || got[1].Unit != "s" {
		t.Errorf("levels of the delay: %+v", got)
	}
	if got := e.Levels("nothing"); got != nil {
		t.Errorf("levels of nothing: %+v", got)
	}
}
