package report

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// resume is the command that goes on with the run.
func (r *Report) resume() string { return "plimsoll resume " + r.dir }

// unfinished: what is not over must not pass for a result.
func unfinished(r *Report) []Finding {
	u := findings.Unfinished{Running: r.Run.State == "running", Resume: r.resume(), Stores: r.Scenario == "upload"}
	for i := range r.Loads {
		if l := &r.Loads[i]; l.going() {
			u.Tests = append(u.Tests, findings.Going{Name: l.name(), Seconds: float64(l.Seconds), Stores: l.info.plan.Upload != nil, Stored: l.Objects.Accepted, Set: l.Objects.Set})
		}
	}
	return findings.Partial(u)
}

// soFar is how many objects are stored.
func (l *LoadTest) soFar() string { return findings.SoFar(l.Objects.Accepted, l.Objects.Set) }

// sum is an amount as rules look at it.
func (l *LoadTest) sum(a Amount) findings.Sum {
	s := findings.Sum{Value: float64(a.Value), Currency: l.currency, In: float64(a.In)}
	if l.Money != nil {
		s.Other = l.Money.In
	}
	return s
}

// money is an amount in the system's currency.
func (l *LoadTest) money(v float64) string { return moneyWords(v, l.currency) }

// breaches are the breaks of all laws.
func (r *Report) breaches() (all []findings.Breach) {
	for i := range r.Loads {
		l := &r.Loads[i]
		for _, b := range l.Breaks {
			all = append(all, findings.Breach{Name: l.name(), Law: b.Law, Reading: b.Name, Amount: l.sum(b.Amount), Fell: float64(b.Fell), Unit: readingUnit(b.Name), Counts: b.Law == findings.LawCounter || booked(b.Name),
				Held: b.Held, From: float64(b.From), To: float64(b.To), Maybe: b.Maybe})
		}
	}
	return all
}

func readingUnit(name string) string {
	if strings.HasSuffix(name, "bytes") {
		return "B"
	}
	return "1"
}

func wealthBreaks(r *Report) []Finding  { return findings.MoneyMissing(r.breaches()) }
func moneyCameIn(r *Report) []Finding   { return findings.MoneyCameIn(r.breaches()) }
func moneyUnderWay(r *Report) []Finding { return findings.MoneyUnderWay(r.breaches()) }
func sumBreaks(r *Report) []Finding     { return findings.MoneySum(r.breaches()) }
func counterFalls(r *Report) []Finding  { return findings.CounterFell(r.breaches()) }
func contractsLeft(r *Report) []Finding { return findings.ContractsLeft(r.breaches()) }

func moneyUnnamed(r *Report) []Finding {
	var all []findings.Unnamed
	for i := range r.Loads {
		if l, u := &r.Loads[i], r.Loads[i].Unnamed; u != nil {
			all = append(all, findings.Unnamed{Name: l.name(), Amount: l.sum(u.Amount), Share: float64(u.Share), Off: float64(u.Off)})
		}
	}
	return findings.MoneyUnnamed(all)
}

func moneyUnspent(r *Report) []Finding {
	var all []findings.Unspent
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.Money == nil {
			continue
		}
		for _, k := range l.Money.Kinds {
			if k.Kind == system.ReadUnspent {
				all = append(all, findings.Unspent{Name: l.name(), Amount: l.sum(k.Amount), Share: float64(k.Share)})
			}
		}
	}
	return findings.MoneyUnspent(all)
}

// stored is what became of the objects of each load test.
func (r *Report) stored() []findings.Objects {
	all := make([]findings.Objects, len(r.Loads))
	for i := range r.Loads {
		l := &r.Loads[i]
		o := l.Objects
		all[i] = findings.Objects{Name: l.name(), Set: o.Set, Accepted: o.Accepted, NotDurable: o.NotDurable, Late: o.Late, Missing: o.Missing, Failed: o.Failed, Refused: o.Refused,
			Unreadable: o.Unreadable, Retried: o.Retried, Adopted: o.Adopted, Attempts: o.Attempts, Settle: l.info.settle()}
	}
	return all
}

func objectsLost(r *Report) []Finding       { return findings.ObjectsMissing(r.stored()) }
func objectsNotStored(r *Report) []Finding  { return findings.ObjectsNotStored(r.stored()) }
func objectsUnreadable(r *Report) []Finding { return findings.ObjectsUnreadable(r.stored()) }
func objectsNotDurable(r *Report) []Finding { return findings.ObjectsNotDurable(r.stored()) }
func retriedObjects(r *Report) []Finding    { return findings.Retried(r.stored()) }
func adoptedObjects(r *Report) []Finding    { return findings.Adopted(r.stored()) }

// redundancyFell: an object that was durable and no longer is.
func redundancyFell(r *Report) []Finding {
	var all []findings.Below
	for i := range r.Loads {
		all = append(all, r.Loads[i].below())
	}
	return findings.RedundancyFell(all)
}

func (l *LoadTest) below() findings.Below {
	return findings.Below{Name: l.name(), Start: l.watch.start, End: l.watch.end, Objects: l.watch.values[system.ReadBelow]}
}

func endedBy(r *Report) []Finding {
	var all []findings.Ending
	for i := range r.Loads {
		l := &r.Loads[i]
		all = append(all, findings.Ending{Name: l.name(), By: l.Ended, Why: l.Why, Sessions: l.Sessions, CutOff: l.CutOff, Unrecorded: l.Unrecorded, Crashes: l.Crashes})
	}
	return findings.Ended(all)
}

// polled is how the polls of each load test went.
func (r *Report) polled() []findings.Polled {
	wrong := func(times map[string]int64, last map[string]string) (all []findings.Wrong) {
		for _, name := range sortedByCount(times) {
			all = append(all, findings.Wrong{Name: name, Times: times[name], Last: last[name]})
		}
		return all
	}
	var all []findings.Polled
	for i := range r.Loads {
		l := &r.Loads[i]
		all = append(all, findings.Polled{Name: l.name(), Made: l.Polls.N, Missed: l.Polls.Missed, Failed: wrong(l.watch.failed, l.watch.why), Absurd: wrong(l.watch.bad, l.watch.absurd)})
	}
	return all
}

func pollGaps(r *Report) []Finding       { return findings.Gaps(r.polled()) }
func absurdReadings(r *Report) []Finding { return findings.Absurd(r.polled()) }

// growths are the growths of something against time, or where that does not
// vary, against what does.
func (r *Report) growths(what func(*LoadTest, string) bool) (all []*Growth, of []*LoadTest) {
	for i := range r.Loads {
		l := &r.Loads[i]
		for j := range l.Growth {
			if g := &l.Growth[j]; what(l, g.What) && g.Against == "hours" {
				all, of = append(all, g), append(of, l)
			}
		}
	}
	return all, of
}

// words say how something grows: "3 s → 310 s (+10233 %, +9800 to +10700), linear with time".
func (g *Growth) words() string {
	s := g.changeWords()
	switch {
	case g.Level.Known():
		s = fmt.Sprintf("%s (%s), %s with time", show(float64(g.Level), g.Unit), s, g.classWords())
	case g.First.Known():
		s = fmt.Sprintf("%s → %s (%s), %s with time", show(float64(g.First), g.Unit), show(float64(g.Last), g.Unit), s, g.classWords())
	default:
		s = g.Why
	}
	for i, c := range g.Changes {
		if i == 3 {
			s += fmt.Sprintf("; and %s more", count(int64(len(g.Changes)-i)))
			break
		}
		s += fmt.Sprintf("; its %s changes after %s", c.Kind, moment(c.Hours.Value*3600))
		if c.Hours.Lo.Known() && c.Hours.Hi.Known() {
			s += fmt.Sprintf(" (%s to %s)", moment(max(0, c.Hours.Lo*3600)), moment(c.Hours.Hi*3600))
		}
	}
	return s + fmt.Sprintf("; n = %s", count(int64(g.N)))
}

// against says which class the same has against files and against bytes, where
// that is another than against time.
func (l *LoadTest) against(g *Growth) string {
	s := ""
	for i := range l.Growth {
		o := &l.Growth[i]
		if o.What == g.What && o.Against != g.Against && o.Class != g.Class {
			s += "; against " + o.Against + ": " + o.classWords()
		}
	}
	return s
}

func (g *Growth) changeWords() string {
	p := func(v Num) string { return fmt.Sprintf("%+.0f", 100*float64(v)) }
	switch {
	case g.Change.Value.Known() && g.bounded():
		return p(g.Change.Value) + " %, " + p(g.Change.Lo) + " to " + p(g.Change.Hi)
	case g.Change.Value.Known():
		return p(g.Change.Value) + " %, without bounds"
	case g.bounded():
		return "a change of " + p(g.Change.Lo) + " to " + p(g.Change.Hi) + " % is not excluded"
	}
	return "no change is excluded"
}

func (g *Growth) classWords() string {
	switch {
	case g.Best == "":
		return "not to be told"
	case !g.Fits:
		return "in no class of growth"
	case g.Class == "unclear":
		return "class unclear, best " + g.Best
	}
	return g.Class
}

// leastChange is the relative change below which growth is not worth a warning.
const leastChange = 0.05

func latencyGrowth(r *Report) []Finding {
	const text = "The time of all calls of a poll together, from the beginning of the test to its end; of each call, where not every poll makes all of them."
	return r.growthFindings(1, func(l *LoadTest, s string) bool {
		return s == "API latency" || strings.HasPrefix(s, "latency of ") && !l.grows("API latency")
	}, Finding{Rule: "latency-grows", Tone: Warn, Title: "The API gets slower", Text: text},
		Finding{Rule: "latency-flat", Tone: Neutral, Title: "The API does not get slower", Text: text},
		Finding{Rule: "latency-unclear", Tone: Neutral, Title: "Whether the API gets slower cannot be told", Text: text})
}

func storeGrowth(r *Report) []Finding {
	const text = "The time from a put to its acceptance, and to full redundancy."
	return r.growthFindings(1, func(_ *LoadTest, s string) bool { return strings.HasPrefix(s, "time to") },
		Finding{Rule: "store-time-grows", Tone: Warn, Title: "Storing an object takes longer and longer", Text: text},
		Finding{Rule: "store-time-flat", Tone: Neutral, Title: "Storing an object does not take longer with time", Text: text},
		Finding{Rule: "store-time-unclear", Tone: Neutral, Title: "Whether storing an object takes longer with time cannot be told", Text: text})
}

func bandwidthGrowth(r *Report) []Finding {
	const text = "File and absolute bytes per second, over stretches of equal time."
	return r.growthFindings(-1, func(_ *LoadTest, s string) bool { return strings.HasSuffix(s, "bandwidth") },
		Finding{Rule: "bandwidth-falls", Tone: Warn, Title: "Bandwidth falls", Text: text},
		Finding{Rule: "bandwidth-flat", Tone: Neutral, Title: "Bandwidth does not fall", Text: text},
		Finding{Rule: "bandwidth-unclear", Tone: Neutral, Title: "Whether bandwidth falls cannot be told", Text: text})
}

// growthFindings tell what gets worse (in the direction of sign), what does not,
// and what may or may not.
func (r *Report) growthFindings(sign Num, what func(*LoadTest, string) bool, gets, flat, open Finding) []Finding {
	flat.Text += " It changed to the better, or a change beyond " + percent(stats.SmallGrowth) + " is excluded."
	open.Text += " Neither is a change to the worse shown, nor one beyond " + percent(stats.SmallGrowth) + " excluded: the run is too short for it, or the values too uneven."
	found := map[outlook]*Finding{worse: &gets, notWorse: &flat, unsettled: &open}
	all, of := r.growths(what)
	for i, g := range all {
		f := found[g.gets(sign)]
		f.Evidence = append(f.Evidence, of[i].name()+", "+g.What+": "+g.words()+of[i].against(g))
	}
	return withEvidence(gets, flat, open)
}

// grows reports whether the growth of something is judged at all.
func (l *LoadTest) grows(what string) bool {
	return slices.ContainsFunc(l.Growth, func(g Growth) bool { return g.What == what })
}

// origin says which of files, bytes and time it is, or that it cannot be told.
func origin(r *Report) []Finding {
	told := Finding{Rule: "attributed", Tone: Warn, Title: "What makes it slower",
		Text: "The designed experiment varied files, bytes and idle time apart from one another; this is what each does while the others are held."}
	open := Finding{Rule: "not-attributed", Tone: Neutral, Title: "Files, bytes and time cannot be told apart",
		Text: "In these tests the number of files, the bytes and the elapsed time rose together, so whatever grew with one grew with all."}
	unclear := Finding{Rule: "attribution-unclear", Tone: Neutral, Title: "The designed experiment does not tell what makes it slower",
		Text: "Files, bytes and idle time were varied apart from one another, and what is left is too little, or too noisy, to name one of them."}
	nothing := Finding{Rule: "attributed-none", Tone: Good, Title: "Neither files, bytes nor time makes it slower",
		Text: "The designed experiment varied files, bytes and idle time apart from one another, and none of them moves these."}
	for i := range r.Loads {
		l := &r.Loads[i]
		if l.designed() {
			for _, c := range l.Attribution {
				s := l.name() + ", " + c.What + ": " + c.Why
				switch {
				case strings.HasPrefix(c.What, "latency of"): // in the table
				case c.Told && len(c.By) > 0:
					told.Evidence = append(told.Evidence, s)
				case c.Told:
					nothing.Evidence = append(nothing.Evidence, s)
				default:
					unclear.Evidence = append(unclear.Evidence, s)
				}
			}
			continue
		}
		var what []string
		for _, g := range l.Growth {
			if g.Shown && g.Against == "hours" && (g.Change.Value >= leastChange || g.Change.Value <= -leastChange) && !slices.Contains(what, g.What) && !strings.HasPrefix(g.What, "latency of") {
				what = append(what, g.What)
			}
		}
		if len(what) > 0 {
			open.Evidence = append(open.Evidence, l.name()+": "+list(what)+l.together())
		}
	}
	return withEvidence(told, unclear, nothing, open)
}

// together says how closely files, bytes and time rose together.
func (l *LoadTest) together() string {
	p := l.polled("", "s", l.watch.latency)
	if len(p.y) < leastGrowth {
		return ""
	}
	least := 1.0
	for i := range p.x {
		for j := range i {
			least = min(least, stat.Correlation(p.x[i], p.x[j], nil))
		}
	}
	return fmt.Sprintf(" (correlations of files, bytes and hours: at least %s, n = %s)", digits(least, 3), count(int64(len(p.y))))
}
