package report

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// A figure of several metrics counts each trial once, run by run.
func TestTheForestCountsTrialsOnce(t *testing.T) {
	two := func(tr *record.Trial) { tr.Metrics["duration_p50"] = 1e9 / tr.Metrics["throughput"] }
	spoilt := func(tr *record.Trial) {
		two(tr)
		if tr.ID == 1 {
			tr.Invalid = []string{record.ReasonBoxBusy}
		}
	}
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 6, value: scattered(1), trial: spoilt}, fakeRun{seed: 2, trials: 7, value: scattered(1), trial: two})
	if len(c.Metrics) < 2 {
		t.Fatal(c.Metrics)
	}
	if f := c.forest("cells", c.Metrics, 0); f.N != "n = 35 valid trials of base, 42 of new" {
		t.Error(f.N)
	}
}

// What a row counts adds up to the cells that both runs have.
func TestTheCountsOfARowAddUp(t *testing.T) {
	narrow := func(factor float64) func(*rand.Rand, string, string) float64 {
		return func(rng *rand.Rand, system, _ string) float64 {
			v := 100e6 * math.Exp(0.001*rng.NormFloat64())
			if system == "boxo" {
				v *= factor
			}
			return v
		}
	}
	c := comparedRuns(t, RunOptions{}, fakeRun{seed: 1, trials: 8, value: narrow(1)}, fakeRun{seed: 2, trials: 8, value: narrow(1.02)})
	o := c.Overall[0]
	if o.Small != 3 || o.Better+o.Worse+o.Small+o.NotShown != len(c.Cells) {
		t.Errorf("2 %% more in 3 of %d cells: %+v", len(c.Cells), o)
	}
	if text := comparedText(t, c); !strings.Contains(text, "small") {
		t.Error(text)
	}
}

// A spread is spoken of where values scatter, not where they come in steps or
// hardly scatter at all.
func TestASpreadIsNoMatterOfSteps(t *testing.T) {
	wide, narrow := []float64{80, 90, 100, 112, 125, 140}, []float64{98, 99, 99.5, 100, 101, 102.5}
	for _, c := range []struct {
		name   string
		xs, ys []float64
		want   bool
	}{
		{"far and near", wide, narrow, true},
		{"steps of a rate", []float64{9.99, 11.98, 11.99, 11.99, 11.99, 13.99}, []float64{3.99, 3.99, 3.99, 5.98, 5.99, 5.99}, false},
		{"steps on one side", wide, []float64{3.99, 3.99, 3.99, 5.98, 5.99, 5.99}, false},
		{"hardly any", []float64{48.4, 48.5, 48.5, 48.6, 48.7, 48.4}, []float64{49.6, 49.6, 49.6, 49.6001, 49.6, 49.6}, false},
	} {
		if got := spreadSpeaks(c.xs, c.ys); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for v, want := range map[Num]string{314: "over 20×", 0.0001: "under 0.0500×", 2.5: "2.50×"} {
		if got := (SpreadChange{Value: v}).words(); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// Settings that differ are told with their units, as an experiment file says them.
func TestSettingsAreToldWithUnits(t *testing.T) {
	base := fakeRun{seed: 1, trials: 2, value: scattered(1)}
	other := base
	other.file = strings.NewReplacer("range: 1MiB", "range: whole", "delay: 20ms", "delay: 5ms", "64MiB", "4MiB", "1Gbit", "50Mbit").Replace(runFile)
	text := comparedText(t, comparedRuns(t, RunOptions{}, base, other))
	for _, want := range []string{" 1MiB → whole", " 64MiB → 4MiB", " 1Gbit → 50Mbit", " 20ms → 5ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
}

func TestRunsOfOtherScenariosAreToldApart(t *testing.T) {
	a := fakeRun{seed: 1, trials: 1, value: scattered(1)}
	b := fakeRun{file: "scenario: overhead\nsystems: [nginx]\noverhead: {operation: get}\ndata: {size: 1KiB}\n", seed: 1, trials: 1, value: scattered(1)}
	_, err := compareInputs([]*input{a.input(t), b.input(t)}, []string{"a", "b"}, RunOptions{})
	if other := (*OtherScenarioError)(nil); !errors.As(err, &other) || other.New != "b" {
		t.Errorf("%v", err)
	}
}
