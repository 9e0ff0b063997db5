package findings

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// gained is a ratio with an interval about it.
func gained(v, off float64) Gain {
	return Gain{Value: v, Lo: v - off, Hi: v + off, Shown: math.Abs(v-1) > off, N: 6}
}

func syncCases() map[string]example {
	nodes := func(left int, meant bool) []Nodes {
		return []Nodes{{Where: "default", Left: left, Trials: 6, Meant: meant, Ends: "stalled ×2", Least: 0.4, Most: 0.4}}
	}
	best := Best{Changed: "storage ram", Before: 10, After: 6, Gain: gained(0.6, 0.05), Of: 8}
	same := best
	same.Changed = ""
	fresh := Fresh{Where: "default", Time: 10, Resolution: 0.1, Replay: 9, Share: 0.9, Peers: 8, Useful: 1, Most: 0.2}
	of := func(change func(*Fresh)) []Fresh {
		other := fresh
		change(&other)
		return []Fresh{other}
	}
	conditions := []Condition{{Where: "1 silent", Trials: 6, Time: 12}, {Where: "none", Trials: 6, Time: 10}}
	walk := Searched{Tried: 5, Planned: 16, Trials: 30, Walks: []Walk{{System: "ledger", Best: "storage ram", Races: 4, Won: 1, Ended: "done"}}}
	cases := map[string]example{
		"never-served":        when(NeverServed, nodes(2, false), append(nodes(2, true), nodes(0, false)...)),
		"never-served-faults": when(NeverServed, nodes(2, true), append(nodes(2, false), nodes(0, true)...)),
		"best":                when(BestFound, []Best{best}, []Best{same}),
		"as-good":             when(AsGoodAsBest, []Alike{{Of: []AsGood{{"storage ram", gained(1.02, 0.05)}}}}, []Alike{{Place: "ledger"}}),
		"replay-disturbed":    when(ReplayDisturbed, of(func(n *Fresh) { n.Replay, n.Share = 12, 1.2 }), of(func(n *Fresh) { n.Replay, n.Share = 10.5, 1.05 })),
		"useless-peers":       when(UselessPeers, of(func(n *Fresh) { n.Useful = 0.75 }), []Fresh{fresh}),
		"conditions":          when(UnderConditions, Conditions{Cells: conditions}, Conditions{Knobs: true, Cells: conditions}),
		"search":              when(SearchTrust, walk, Searched{Tried: 16, Planned: 16, Trials: 96}),
		"risks":               when(Risks, []Priced{{Shown: true, Changes: []Change{{Name: "storage ram", Factor: "sync.storage", Value: "ram"}}}}, []Priced{{Shown: true}}),
		"shape":               tells(ShapeFound, []Shape{{Knob: "batch", Unit: "1", Shape: stats.UShape, Lowest: 10, From: 10, To: 10}}, []Shape{{Knob: "batch", Unit: "1", Shape: stats.FlatShape, Lowest: 10, From: 10, To: 10}}, "too little and too much"),
	}

	whole := Effect{Name: "storage ram", Knobs: true, Gain: gained(0.6, 0.05), PHolm: 0.001}
	none, open := whole, whole
	none.Gain, none.PHolm = gained(1.01, 0.02), 1
	open.Gain, open.PHolm = gained(0.9, 0.3), 0.6
	pair := Effect{Name: "storage ram × subscribers none", Two: true, Gain: gained(1.6, 0.2), PHolm: 0.001}
	chance, link, mixed := pair, none, whole
	chance.PHolm = 0.03 // one of a hundred runs of nothing must not say it
	link.Knobs = false
	mixed.Aliases = []string{"timeouts short × subscribers none"}
	effects := func(of ...Effect) []Effects { return []Effects{{Trials: 48, Freedom: 40, Of: of}} }
	cases["interactions"] = when(Interactions, effects(pair), effects(whole, chance))
	cases["no-gain"] = when(NoGain, effects(none), effects(whole, open, link, pair))
	cases["cannot-tell"] = when(CannotTell, effects(open), effects(whole, none, pair))
	cases["aliases"] = when(Aliased, effects(mixed), effects(whole, pair))
	return cases
}

// A time is a coarse one from a share of it on, whatever it is.
func TestCoarseSyncs(t *testing.T) {
	fresh := Fresh{Where: "default", Time: 10, Resolution: 0.9}
	coarse := fresh
	coarse.Resolution = 1.1
	if f := CoarseSyncs([]Fresh{fresh, coarse}); len(f) != 1 || f[0].Rule != "coarse" || strings.Join(f[0].Evidence, "|") != "default: 1.10 s between polls, 10.0 s until it serves" {
		t.Errorf("%+v", f)
	}
	if f := CoarseSyncs([]Fresh{fresh, {Time: math.NaN(), Resolution: math.NaN()}}); f != nil {
		t.Errorf("found where it is not: %+v", f)
	}
}

func TestSyncsInWords(t *testing.T) {
	nan := math.NaN()
	gain := gained(1.5, 0.1)
	for _, c := range []struct {
		said []Finding
		want string
	}{
		{NeverServed([]Nodes{{Where: "default", Left: 3, Trials: 6, Ends: "stalled ×2, failed ×1", Reasons: "no further block", Least: 0.1, Most: 0.4}, {Where: "none", Left: 1, Trials: 1, Ends: "stalled ×1", Least: nan, Most: nan}}),
			"default: 3 of 6 trials: stalled ×2, failed ×1 (no further block); with 10 % to 40 % of the chain|none: 1 of 1 trial: stalled ×1"},
		{BestFound([]Best{{Place: "ledger", Changed: "storage ram", Before: 10, After: 6, Gain: gained(0.6, 0.05), Of: 4, Never: 4}}),
			"ledger: storage ram: 6.00 s against 10.0 s of the default, −40 % (−35…−45), from 6 pairs of trials of 4 configurations (4 more not considered: nodes never came to serve)"},
		{UnderConditions(Conditions{Cells: []Condition{{Where: "none", Trials: 6, Time: 10, Lo: 9, Hi: 11}, {Where: "1 silent", Trials: 6, Left: 1, Time: 15, Lo: nan, Hi: nan, Against: &gain}, {Where: "2 silent", Trials: 6, Left: 6, Time: nan}, {Where: "3 silent"}}}),
			"none: 10.0 (9.00–11.0) s|1 silent: 15.0 s, +50 % (+40…+60); 1 of 6 never served|2 silent: 6 of 6 never served|3 silent: no valid trial"},
		{UselessPeers([]Fresh{{Where: "default", Timeouts: 1, Again: 3, Useful: 0.75, Most: 0.5, Peers: 4}, {Where: "one peer", Useful: 0, Most: 1, Peers: 1}}),
			"default: 1 timeout, 3 requests in vain, timeouts among them, 75 % of the peers useful, 50 % of the blocks from one peer|one peer: 0 % of the peers useful"},
		{SearchTrust(Searched{Tried: 5, Planned: 16, Trials: 30, Walks: []Walk{{"ledger", "storage ram", 4, 1, 2, "50s", "1m0s", record.SearchBudget}, {"other", "default", 1, 0, 1, "5s", "1m0s", "done"}, {"third", "default", 0, 0, 0, "0s", "1m0s", ""}}}),
			"5 of 16 combinations were tried, in 30 valid trials|ledger: 4 races, 1 won; it stands at storage ram, after 50s of 1m0s; the budget ended it, so what it had not tried yet may be better|other: 1 race, 0 won; it stands at default, after 5s of 1m0s; 1 race is not decided|third: 0 races, 0 won; it stands at default, after 0s of 1m0s; it is not at its end"},
		{ShapeFound([]Shape{{Knob: "timeout", Where: "ledger", Unit: "s", Shape: stats.FallingShape, Why: "1.5 times", Lowest: 10, From: 5, To: 20, Levels: []Level{{"1 s", 1, 2, 6, true}, {"2 s", 2, 1, 6, false}, {"10 s", 10, 0, 6, false}}}, {Knob: "batch", Unit: "1", Shape: stats.UnknownShape, Why: "few"}}),
			"timeout (ledger): less is shown to be worse, more is not: the best is at 5 s to 20 s; 1.5 times; at 1 s 2 of 6 never served; at 2 s 1 of 6 never served, which shows nothing of it: it was not compared|batch: no shape is shown; few"},
	} {
		if len(c.said) != 1 || strings.Join(c.said[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", c.said, c.want)
		}
	}
}

// A gain that is not shown colours the finding, and of many configurations that are as
// good the first are named.
func TestBestIsToldWithItsDoubt(t *testing.T) {
	if f := BestFound([]Best{{Changed: "storage ram", Gain: gained(0.6, 0.1)}, {Changed: "storage ram", Gain: gained(0.98, 0.1)}}); f[0].Tone != Neutral || !strings.Contains(f[0].Evidence[1], "~ −2 %") {
		t.Errorf("%+v", f)
	}
	many := slices.Repeat([]AsGood{{"storage ram", gained(1.02, 0.05)}}, alikeNamed+1)
	if f := AsGoodAsBest([]Alike{{Of: many}}); len(f[0].Evidence) != alikeNamed+1 {
		t.Errorf("one more is counted instead of named: %v", f[0].Evidence)
	}
	if f := AsGoodAsBest([]Alike{{Place: "ledger", Of: append(many, AsGood{})}}); len(f[0].Evidence) != alikeNamed+1 || f[0].Evidence[alikeNamed] != "ledger: and 2 more" {
		t.Errorf("%v", f[0].Evidence)
	}
}

// Of two that depend on each other the way round is told that says more.
func TestInteractionsAreToldTheTellingWayRound(t *testing.T) {
	one := Given{What: "subscribers none", Other: "storage is ram", Knob: true, With: [2]Gain{gained(0.6, 0.1), gained(0.7, 0.1)}}
	two := Given{What: "storage ram", Other: "subscribers is none", Knob: true, With: [2]Gain{gained(0.6, 0.1), gained(1, 0.02)}}
	pair := Effect{Name: "pair", Two: true, Gain: gained(1.6, 0.2), PHolm: 0.001}
	condition := one
	condition.Knob = false
	wide := two
	wide.With[1] = gained(1, 0.3)
	unknown := two
	unknown.With[1] = Gain{Value: math.NaN()}
	for _, c := range []struct {
		given [2]Given
		want  string
	}{
		{[2]Given{one, two}, "storage ram gains −40 % (−30…−50), and gains nothing (~ 0 % (−2…+2)) once subscribers is none"},
		{[2]Given{two, one}, "storage ram gains"}, // the first, as it says more already
		{[2]Given{condition, one}, "subscribers none gains −40 % (−30…−50), and gains −30 % (−20…−40) once"},
		{[2]Given{one, wide}, "and is not shown to gain (~ 0 % (−30…+30)) once"},
		{[2]Given{one, unknown}, "and is not known once"},
		{[2]Given{condition, condition}, "subscribers none gains"},
	} {
		pair.Given = c.given[:]
		if f := Interactions([]Effects{{Of: []Effect{pair}}}); len(f) != 1 || !strings.Contains(f[0].Evidence[0], "pair: 1.60× (1.40–1.80); ") || !strings.Contains(f[0].Evidence[0], c.want) {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}

func TestEffectsInWords(t *testing.T) {
	nan := math.NaN()
	open := Effect{Name: "storage ram", Gain: gained(0.9, 0.3)}
	pair := Effect{Name: "storage ram × subscribers none", Two: true, Gain: gained(1.1, 0.4), Aliases: []string{"timeouts short"}}
	lost := Effect{Name: "timeouts short", Gain: gained(0.5, 0.1), Survivors: true, Warn: "of the nodes that came to serve alone"}
	lost.Gain.Shown = false
	blind := Effect{Name: "batch 10", Gain: Gain{Value: nan, Lo: nan, Hi: nan}, Warn: "no trial has it", Aliases: []string{"batch 20", "pair"}}
	all := []Effects{{Place: "ledger", Trials: 8, Of: []Effect{open, pair, lost, blind}, Warnings: []string{"one combination has no trial"}}}
	for _, c := range []struct {
		said []Finding
		want string
	}{
		{CannotTell(all), "ledger: storage ram: ~ −10 % (−40…+20)|ledger: timeouts short: ~ −50 % (−40…−60); of the nodes that came to serve alone|ledger: batch 10: no trial has it|ledger: whether they depend on each other: storage ram × subscribers none ~ 1.10× (0.700–1.50)|" +
			"ledger: 8 trials are as many as the effects: nothing is left to tell the noise from, so no effect has an interval; repeat|ledger: one combination has no trial"},
		{Aliased(all), "ledger: batch 10 with batch 20 and pair|ledger: pairs: storage ram × subscribers none with timeouts short"},
	} {
		if len(c.said) != 1 || strings.Join(c.said[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", c.said, c.want)
		}
	}
}

func TestPricesOfChanges(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		of   Change
		want string
	}{
		{Change{Factor: "sync.storage", Value: "ram"}, "lies in memory"},
		{Change{Factor: "sync.storage", Value: "disk"}, "was not measured here"},
		{Change{Factor: "bolt-sync", Value: "off"}, "not made safe"},
		{Change{Factor: "bolt-sync", Value: "full"}, "was not measured here"},
		{Change{Factor: "timeout", Is: 1, Was: 10}, "given up on"},
		{Change{Factor: "timeout", Is: 20, Was: 10}, "was not measured here"},
		{Change{Factor: "timeout", Value: "short", Is: nan, Was: nan}, "given up on"},
		{Change{Factor: "subscribers", Value: "none"}, "fewer parts"},
		{Change{Factor: "sync.peers"}, "each peer takes"},
	} {
		if got := c.of.price(); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}

// A change has one price, however many conditions it is best under, and gains where it
// is shown to under any of them.
func TestRisksOfSeveralConditions(t *testing.T) {
	ram := Change{Name: "storage ram", Factor: "sync.storage", Value: "ram"}
	alone := ram
	alone.Alone = true
	for _, c := range []struct {
		of   []Priced
		tone Tone
		want string // how the only evidence ends
	}{
		{[]Priced{{Changes: []Change{ram}}}, Neutral, "not shown to gain anything here"},
		{[]Priced{{Changes: []Change{ram}}, {Shown: true, Changes: []Change{alone}}}, Warn, "no power cut"},
	} {
		if f := Risks(c.of); len(f) != 1 || f[0].Tone != c.tone || len(f[0].Evidence) != 1 || !strings.HasSuffix(f[0].Evidence[0], c.want) {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}

// Levels at which nodes fail are shown by enough trials alone, and an end at which they
// do is worse than any time.
func TestShapeWhereNodesFail(t *testing.T) {
	level := func(at float64, left, trials int) Level { return Level{At: at, Left: left, Trials: trials} }
	tied := stats.ShapeLevel{Tied: true}
	fit := func(shape string, levels ...float64) stats.ShapeFit {
		f := stats.ShapeFit{Shape: shape, Why: "by its times", Lowest: 1}
		for _, at := range levels {
			l := tied
			l.At = at
			f.Levels = append(f.Levels, l)
		}
		return f
	}
	slow := fit(stats.RisingShape, 5, 10, 20)
	slow.Levels[2].Tied, slow.Levels[2].Ratio = false, stats.Interval{Mid: 2, Lo: 1.5, Hi: 3}
	for _, c := range []struct {
		levels []Level
		fit    stats.ShapeFit
		n      int
		shape  string
		why    string
	}{
		{[]Level{level(1, 6, 6), level(5, 0, 6), level(10, 0, 6), level(20, 0, 6)}, fit(stats.FlatShape, 5, 10, 20), 1, stats.FallingShape, "nodes are shown not to serve below 5 s, 20 s is not shown to be worse than the best"},
		{[]Level{level(5, 0, 6), level(10, 0, 6), level(20, 0, 6), level(40, 6, 6)}, fit(stats.FlatShape, 5, 10, 20), 1, stats.RisingShape, "5 s is not shown to be worse than the best, nodes are shown not to serve above 20 s"},
		{[]Level{level(1, 6, 6), level(5, 0, 6), level(10, 0, 6), level(20, 0, 6)}, slow, 1, stats.UShape, "nodes are shown not to serve below 5 s, 2 times (at least 1.5 times) as much at 20 s as at 10 s"},
		{[]Level{level(1, 1, 6), level(5, 0, 6), level(10, 0, 6), level(20, 0, 6)}, fit(stats.FlatShape, 5, 10, 20), 0, stats.FlatShape, "by its times"}, // one of six is chance
		{[]Level{level(1, 2, 2), level(5, 0, 2), level(10, 0, 3), level(40, 2, 2)}, fit(stats.FlatShape, 5, 10), 0, stats.FlatShape, "by its times"},     // 0.048 each, and there are two
		{[]Level{level(5, 0, 6), level(7, 6, 6), level(10, 0, 6), level(20, 0, 6)}, fit(stats.FlatShape, 5, 10, 20), 1, stats.FlatShape, "by its times"}, // between those that serve it is no end
	} {
		n := ShowFailing(c.levels)
		if shape, why := ShapeOf(c.fit, c.levels, "s"); n != c.n || shape != c.shape || why != c.why {
			t.Errorf("%+v: %d fail, %s: %s; want %d, %s: %s", c.levels, n, shape, why, c.n, c.shape, c.why)
		}
	}
}
