package findings

import (
	"math"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

// growing is what changes by so much, with an interval about it.
func growing(what string, change, off float64) Growing {
	return Growing{Name: "siad", What: what, Unit: "s", N: 480, Class: "linear", Best: "linear", Fits: true, Level: math.NaN(), First: 3, Last: 3 * (1 + change),
		Change: change, Lo: change - off, Hi: change + off, Shown: math.Abs(change) > off}
}

func growthCases() map[string]example {
	cases := map[string]example{}
	for rule, c := range map[string]struct {
		look func([]Growing) []Finding
		what string
		sign float64
	}{
		"latency":    {LatencyGrows, "API latency", 1},
		"store-time": {StoreTimeGrows, "time to store an object", 1},
		"bandwidth":  {BandwidthFalls, "file bandwidth", -1},
	} {
		grows := []Growing{growing(c.what, c.sign*0.5, 0.1)}
		better := []Growing{growing(c.what, -c.sign*0.5, 0.1)}
		little := []Growing{growing(c.what, c.sign*0.5*LeastChange, 0.01)}
		noisy := []Growing{growing(c.what, c.sign*0.5, 3)}
		gets := rule + "-grows"
		if c.sign < 0 {
			gets = rule + "-falls"
		}
		cases[gets] = when(c.look, grows, append(append(better, little...), noisy...))
		cases[rule+"-flat"] = when(c.look, better, append(grows, noisy...))
		cases[rule+"-unclear"] = when(c.look, noisy, append(grows, better...))
	}
	grew := []Growing{growing("API latency", 0.5, 0.1), growing("latency of renter", 0.5, 0.1)}
	flat := []Growing{growing("API latency", 0.5, 3), growing("latency of renter", 0.5, 0.1)}
	designed := func(c Cause) []Origin {
		return []Origin{{Name: "siad", Designed: true, Causes: []Cause{c}, Growths: grew}}
	}
	files, none := designed(Cause{What: "API latency", By: []string{"files"}, Told: true, Why: "files move it"}), designed(Cause{What: "API latency", Told: true, Why: "nothing moves it"})
	open, call := designed(Cause{What: "API latency", Why: "the noise is too large"}), designed(Cause{What: "latency of renter", By: []string{"files"}, Told: true, Call: true})
	cases["attributed"] = when(Origins, files, append(append(none, open...), call...))
	cases["attributed-none"] = when(Origins, none, append(files, open...))
	cases["attribution-unclear"] = when(Origins, open, append(files, none...))
	cases["not-attributed"] = when(Origins, []Origin{{Name: "siad", Growths: grew}}, append([]Origin{{Name: "siad", Growths: flat}}, files...))
	return cases
}

func TestGrowthInWords(t *testing.T) {
	nan := math.NaN()
	turning := growing("API latency", 0.5, 0.1)
	turning.Else = []string{"files: constant"}
	open := growing("API latency", nan, nan)
	open.Fits, open.Shown = false, false
	for _, c := range []struct {
		of   Growing
		want string
	}{
		{turning, "3.00 s → 4.50 s (+50 %, +40 to +60), linear with time; n = 480; against files: constant"},
		{open, "3.00 s → – (no change is excluded), in no class of growth with time; n = 480"},
		{Growing{Level: 3, Unit: "s", Class: "constant", Best: "constant", Fits: true, First: nan, Change: nan, Lo: -0.02, Hi: 0.03, N: 12}, "3.00 s (a change of -2 to +3 % is not excluded), constant with time; n = 12"},
		{Growing{Level: nan, First: nan, Why: "too few points", Change: nan, Lo: nan, Hi: nan, N: 3}, "too few points; n = 3"},
	} {
		if got := c.of.words(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A single call is judged where not every poll makes all of them, of that load test
// alone.
func TestLatencyOfSingleCalls(t *testing.T) {
	call, other := growing("latency of renter", 0.5, 0.1), growing("latency of renter", 0.5, 0.1)
	other.Name = "renterd"
	f := LatencyGrows([]Growing{growing("API latency", 0.5, 0.1), call, other})
	if len(f) != 1 || len(f[0].Evidence) != 2 || !strings.HasPrefix(f[0].Evidence[0], "siad, API latency") || !strings.HasPrefix(f[0].Evidence[1], "renterd, latency of renter") {
		t.Errorf("%+v", f)
	}
}

// What hardly changes is excluded to change only when its whole interval is small.
func TestOutlook(t *testing.T) {
	level := growing("API latency", math.NaN(), math.NaN())
	level.Class, level.Shown = string(stats.Constant), false
	for _, c := range []struct {
		of   Growing
		want outlook
	}{
		{growing("", LeastChange, 0.01), worse},
		{growing("", 0.02, 0.01), notWorse},
		{growing("", 0.02, stats.SmallGrowth), unsettled},
		{growing("", -0.5, 0.1), notWorse},
		{level, notWorse},
	} {
		if got := c.of.gets(1); got != c.want {
			t.Errorf("%+v: %v, want %v", c.of, got, c.want)
		}
	}
}

func TestOriginsInWords(t *testing.T) {
	f := Origins([]Origin{{Name: "siad", Growths: []Growing{growing("API latency", 0.5, 0.1), growing("file bandwidth", -0.5, 0.1)}, Correlation: 0.9876, N: 480}})
	if want := "siad: API latency and file bandwidth (correlations of files, bytes and hours: at least 0.988, n = 480)"; len(f) != 1 || f[0].Evidence[0] != want {
		t.Errorf("%+v, want %q", f, want)
	}
}
