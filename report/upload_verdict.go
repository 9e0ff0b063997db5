package report

import (
	"fmt"
	"slices"
	"strings"
)

// judgeLoads is the sentence to remember of load tests: what came of them, what
// is wrong with the money, whether it slows down. What is not over says so first.
func (r *Report) judgeLoads() *Verdict {
	if len(r.Loads) == 0 {
		return nil
	}
	var parts []string
	tone := Good
	worse := func(t Tone) {
		order := map[Tone]int{Good: 0, Neutral: 1, Warn: 2, Bad: 3}
		if order[t] > order[tone] {
			tone = t
		}
	}
	going := 0
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.going() {
			going++
		}
		if len(r.Loads) > 4 {
			continue
		}
		parts = append(parts, l.outcome(len(r.Loads) > 1))
	}
	if len(r.Loads) > 4 {
		parts = append(parts, r.outcomes())
	}
	if r.Run.Valid == 0 && r.Run.Done > 0 {
		parts = append([]string{"no trial is valid"}, parts...)
		worse(Bad)
	}
	for _, v := range []struct{ rule, say string }{
		{"link-not-emulated", "links were not emulated: these are numbers of the bare machine"},
		{"money-missing", "money is missing"}, {"money-sum", "its account of the spending does not add up"},
		{"objects-missing", "accepted objects went missing"}, {"objects-failed", ""}, {"objects-refused", ""}, {"objects-unreadable", ""}, {"redundancy-fell", "redundancy fell and was not repaired"},
		{"not-durable", "not every object became durable in time"}, {"slows-down", r.slows()}} {
		for _, f := range r.Findings {
			if f.Rule == v.rule {
				worse(f.Tone)
				if v.say != "" {
					parts = append(parts, v.say)
				}
			}
		}
	}
	text := capital(strings.Join(parts, "; ")) + "."
	if going > 0 {
		worse(Warn)
		which := "this is"
		if len(r.Loads) > 1 {
			which = plural(int64(going), "load test is", "load tests are")
		}
		text = fmt.Sprintf("So far: %s not over (go on with `%s`). %s", which, r.resume(), text)
	}
	return &Verdict{text, tone}
}

// outcome is what came of a load test.
func (l *LoadTest) outcome(named bool) string {
	who := ""
	if named {
		who = l.name() + ": "
	}
	if l.info.plan.Upload == nil {
		return who + plural(int64(l.Polls.N), "poll", "polls") + " in " + moment(l.Seconds)
	}
	s := fmt.Sprintf("%s%s (%s) in %s", who, l.soFar(), show(float64(l.Bytes), "B"), moment(l.storedIn()))
	if l.Efficiency != nil && l.Efficiency.Value.Value.Known() {
		s += fmt.Sprintf(" at a storage efficiency of %s", shareWords(float64(l.Efficiency.Value.Value)))
	}
	if l.Money != nil && l.Money.Used.Value.Known() {
		s += ", for " + l.sum(l.Money.Used).Words()
	}
	return s
}

// storedIn is the time that the file bandwidth is of: fetching what was stored is not
// in it, nor is waiting for its full redundancy. Of a test that stored nothing it is all.
func (l *LoadTest) storedIn() Num {
	if from, to := l.storing(); len(l.shelf.accepted) > 0 && to > from {
		return Num(to - from)
	}
	return l.Seconds
}

// shareWords is a share that may be tiny: "0.00000045 %".
func shareWords(v float64) string {
	if v > 0 && v < 1e-3 {
		return digits(100*v, 3) + " %"
	}
	return percent(v)
}

// outcomes is what came of many.
func (r *Report) outcomes() string {
	stored, set, bytes := int64(0), int64(0), 0.0
	for _, l := range r.Loads {
		stored, set = stored+l.Objects.Accepted, set+l.Objects.Set
		if l.Bytes.Known() {
			bytes += float64(l.Bytes)
		}
	}
	s := plural(int64(len(r.Loads)), "load test", "load tests") + ": " + count(stored)
	if set > 0 {
		s += " of " + count(set)
	}
	return s + " objects stored (" + show(bytes, "B") + ")"
}

// grew says in a clause how something grew where it did most.
func (r *Report) grew(what string) string {
	var most *Growth
	where := ""
	for i := range r.Loads {
		for j := range r.Loads[i].Growth {
			g := &r.Loads[i].Growth[j]
			if x := g.growing(); g.What == what && x.Slows() && (most == nil || g.Change.Value > most.Change.Value) {
				most = g
				if len(r.Loads) > 1 {
					where = " of " + r.Loads[i].name()
				}
			}
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("%s%s grew from %s to %s", what, where, show(float64(most.First.Value), most.Unit), show(float64(most.Last.Value), most.Unit))
}

// slows says in a clause what slows down.
func (r *Report) slows() string {
	parts := slices.DeleteFunc([]string{r.grew("API latency"), r.grew("time to store an object")}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return "it slows down with load"
	}
	return strings.Join(parts, "; ")
}

// loadAnswers say of each system what its load tests did.
func (r *Report) loadAnswers() []Answer {
	out := []Answer{}
	for i := range r.Loads {
		l := &r.Loads[i]
		var parts []string
		if l.Where != "" {
			parts = append(parts, l.Where)
		}
		if l.FileRate.Value.Known() && (l.FileRate.Value != 0 || l.info.plan.Upload != nil) {
			s := "file bandwidth " + show(float64(l.FileRate.Value), "B/s")
			switch {
			case l.atMost():
				s += fmt.Sprintf(", absolute between %s and %s, for polls are too few to tell", show(float64(l.AbsoluteRate.Lo), "B/s"), show(float64(l.AbsoluteRate.Hi), "B/s"))
			case l.AbsoluteRate.Value.Known():
				s += ", absolute " + showRange(l.AbsoluteRate.Value, l.AbsoluteRate.Lo, l.AbsoluteRate.Hi, "B/s")
			}
			parts = append(parts, s)
		}
		if e := l.Efficiency; e != nil && e.Padding.Known() {
			parts = append(parts, fmt.Sprintf("efficiency %s = %s padding × %s redundancy and metadata; at most %s", shareWords(float64(e.Value.Value)), shareWords(float64(e.Padding)), shareWords(float64(e.Redundancy)), shareWords(float64(e.Line))))
		}
		if l.Accept.Value.Known() {
			s := "an object is accepted after " + showRange(l.Accept.Value, l.Accept.Lo, l.Accept.Hi, "s")
			if l.Durable.Value.Known() {
				s += ", durable after " + showRange(l.Durable.Value, l.Durable.Lo, l.Durable.Hi, "s")
			}
			parts = append(parts, s)
		}
		if l.LatencyFirst.Value.Known() {
			in := func(e Estimate, open Num) string {
				if open > 0 {
					return fmt.Sprintf("at least %s (%s timed out)", show(float64(e.Value), "s"), percent(float64(open)))
				}
				return show(float64(e.Value), "s")
			}
			parts = append(parts, fmt.Sprintf("the API answers a poll in %s at the beginning and %s at the end", in(l.LatencyFirst, l.FirstOpen), in(l.LatencyLast, l.LastOpen)))
		}
		if len(parts) > 0 {
			out = append(out, Answer{l.System, strings.Join(parts, "; ") + "."})
		}
	}
	return out
}
