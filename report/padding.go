package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// paddingOfObjects looks for the unit that objects of many sizes are rounded up to.
func paddingOfObjects(r *Report) []Finding {
	var all []findings.Stored
	for _, s := range r.Systems {
		for _, op := range uploads() {
			for _, what := range []struct{ key, title string }{{"expansion", "absolute bytes"}, {"disk_per_byte", "disk blocks"}} {
				by := map[float64][]float64{}
				for i := range r.Trials {
					t := &r.Trials[i]
					if o := t.Info.overhead(); o == nil || o.Operation != op || t.Info.System != s.Name || !t.Valid() {
						continue
					}
					// 0: it stays at the client.
					if x, ok := t.Metrics[what.key]; ok && x > 0 && t.Info.size() > 0 && !r.local(t.Info) {
						by[t.Info.size()] = append(by[t.Info.size()], x*t.Info.size())
					}
				}
				lots, n := findings.Sized(by)
				all = append(all, findings.Stored{Name: s.Name + ", " + op, What: what.title, Lots: lots, N: n})
			}
		}
	}
	return findings.Padding(all)
}

// lotsOfObjects is into how many stretches a load test is cut, in each of which as
// many objects were stored.
const lotsOfObjects = 40

// objectsInLots is how many objects are looked at: more would tell nothing more.
const objectsInLots = 20000

// paddingOfLoads does so from what the servers' bytes grew by while objects of
// known sizes came.
func paddingOfLoads(r *Report) []Finding {
	var all []findings.Stored
	for i := range r.Loads {
		l := &r.Loads[i]
		if lots := l.lots(); lots != nil {
			all = append(all, findings.Stored{Name: l.name(), What: "absolute bytes", Lots: lots, Series: true})
		}
	}
	return findings.Padding(all)
}

// lots are stretches of a load test between two polls: the objects that were stored
// in them, and by how much the bytes on the servers grew. Where it is known when
// objects have their full redundancy, that is when they count. It takes every object: of a test with more than are kept the first
// ones alone.
func (l *LoadTest) lots() []stats.Lot {
	v, list, early := l.watch.values[system.ReadAbsolute], l.shelf.accepted, l.shelf.early[0]
	if l.shelf.settled {
		list, early = l.shelf.durable, l.shelf.early[1]
	}
	if l.shelf.sparse {
		list = early
	}
	if l.info.plan.Upload == nil || len(list) < 2*lotsOfObjects {
		return nil
	}
	cut := l.shelf.sparse || len(list) > objectsInLots // more came after these
	list = list[:min(len(list), objectsInLots)]
	each := len(list) / lotsOfObjects
	var lots []stats.Lot
	var lot stats.Lot
	was, next := math.NaN(), 0
	if l.fresh() {
		was = 0
	}
	for i, x := range v {
		if math.IsNaN(x) {
			continue
		}
		for next < len(list) && list[next].at <= l.watch.mid(i) {
			lot.Sizes = append(lot.Sizes, float64(list[next].size))
			next++
		}
		if cut && next == len(list) {
			break
		}
		if math.IsNaN(was) {
			was, lot.Sizes = x, nil
		}
		if len(lot.Sizes) >= each {
			if lot.Takes = x - was; lot.Takes > 0 {
				lots = append(lots, lot)
			}
			was, lot = x, stats.Lot{}
		}
	}
	return lots
}
