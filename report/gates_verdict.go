package report

import (
	"fmt"
	"slices"
	"strings"
)

// gateCount is how many gates there are, and which of them do not pass. A gate of
// several runs counts once, by its gravest ruling; goals are none.
type gateCount struct {
	all              int
	fail, open, base []string // their rules; base: plimsoll compare decides them
}

// gravity orders the states of a ruling.
var gravity = []string{RuleBase, RulePass, RuleOpen, RuleFail}

func countGates(all []Ruling) gateCount {
	var n gateCount
	states := map[string]int{}
	var rules []string
	for _, g := range all {
		if g.Goal {
			continue
		}
		if _, has := states[g.Rule]; !has {
			rules = append(rules, g.Rule)
		}
		states[g.Rule] = max(states[g.Rule], slices.Index(gravity, g.State))
	}
	n.all = len(rules)
	for _, rule := range rules {
		switch gravity[states[rule]] {
		case RuleFail:
			n.fail = append(n.fail, rule)
		case RuleOpen:
			n.open = append(n.open, rule)
		case RuleBase:
			n.base = append(n.base, rule)
		}
	}
	return n
}

// state is the gravest; empty: there are no gates.
func (n gateCount) state() string {
	switch {
	case n.all == 0:
		return ""
	case len(n.fail) > 0:
		return RuleFail
	case len(n.open) > 0:
		return RuleOpen
	case len(n.base) == n.all:
		return RuleBase
	}
	return RulePass
}

// SayGates says how many of the gates fail or cannot be told, and which; or that they
// pass. Empty: there are none.
func SayGates(all []Ruling) string { return countGates(all).words() }

func (n gateCount) words() string {
	var parts []string
	say := func(rules []string, one, more string) {
		if len(rules) == 0 {
			return
		}
		subject, verb := fmt.Sprintf("%d of %d gates", len(rules), n.all), more
		if len(rules) == 1 {
			verb = one
		}
		if n.all == 1 {
			subject = "the gate"
		}
		parts = append(parts, subject+" "+verb+": "+someRules(rules))
	}
	say(n.fail, "fails", "fail")
	say(n.open, "cannot be told", "cannot be told")
	switch pass := n.all - len(n.base); {
	case pass == 0 || len(parts) > 0:
	case n.all == 1:
		parts = append(parts, "the gate passes")
	case pass == n.all:
		parts = append(parts, fmt.Sprintf("all %d gates pass", n.all))
	case pass == 1:
		parts = append(parts, fmt.Sprintf("1 of %d gates passes", n.all))
	default:
		parts = append(parts, fmt.Sprintf("%d of %d gates pass", pass, n.all))
	}
	say(n.base, "needs a base run (plimsoll compare)", "need a base run (plimsoll compare)")
	return strings.Join(parts, "; ")
}

// mostRules is how many rules a sentence names.
const mostRules = 2

func someRules(rules []string) string {
	if len(rules) > mostRules {
		return strings.Join(rules[:mostRules], "; ") + fmt.Sprintf("; and %d more", len(rules)-mostRules)
	}
	return strings.Join(rules, "; ")
}

// holding is a verdict with what the gates say, which comes first where they do not
// pass: they are what its reader has to decide by. Only what spoils the gates
// themselves, too, comes before.
func (v Verdict) holding(all []Ruling) Verdict {
	n := countGates(all)
	said := n.words()
	if said == "" {
		return v
	}
	said = capital(said) + "."
	switch n.state() {
	case RuleFail, RuleOpen:
		if v.Tone == Bad {
			return Verdict{v.Text + " " + said, Bad}
		}
		return Verdict{said + " " + v.Text, stateTone(n.state())}
	}
	return Verdict{v.Text + " " + said, v.Tone}
}
