package report

import (
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
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

// growing is a growth as rules look at it.
func (g *Growth) growing() findings.Growing {
	return findings.Growing{What: g.What, Unit: g.Unit, N: g.N, First: float64(g.First.Value), Last: float64(g.Last.Value),
		Change: float64(g.Change.Value), Lo: float64(g.Change.Lo), Hi: float64(g.Change.Hi), Shown: g.Shown}
}

// slowing looks at what changes from the first quarter of a load test to its last.
func slowing(r *Report) []Finding {
	var all []findings.Growing
	for i := range r.Loads {
		for j := range r.Loads[i].Growth {
			g := r.Loads[i].Growth[j].growing()
			g.Name = r.Loads[i].name()
			all = append(all, g)
		}
	}
	return findings.Slowing(all)
}
