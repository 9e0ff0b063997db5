package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// shares of the content at which the way to completion is told, as in the study
// that the scenario follows.
var shares = [...]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 1}

// spread is what one trial of the scenario disseminate recorded of its nodes.
// Times are seconds since the trial's epoch; NaN: it did not come to that.
type spread struct {
	size     float64
	release  float64 // the first leecher's
	end      float64 // of what was watched
	leechers []fetched
	together [len(shares)]float64 // when the leechers had this share of all their content
	nodes    []swarmNode          // of all that took part
	events   []record.Event       // faults, and what happened to nodes
	epoch    int64                // wall clock of second 0, nanoseconds
}

// fetched is one leecher's way. Moments are ends of polls: what they tell had
// happened by then.
type fetched struct {
	node                 int
	release, first, done float64
	disk, end            float64 // end: when the outcome was decided
	outcome              record.Outcome
	class                string
	got                  float64              // bytes verified at the end
	reached              [len(shares)]float64 // share of the content verified
}

// swarmNode is what a node of a swarm used in a trial. NaN: not known.
type swarmNode struct {
	node                     int
	name                     string
	seeder                   bool
	received, sent, cpu, rss float64
}

// wanted reports whether the system had to bring this leecher to its end: it was
// not taken away on purpose.
func (f *fetched) wanted() bool { return f.outcome != record.Cancelled && f.outcome != record.InFlight }

// seconds from the leecher's release to a moment.
func (f *fetched) after(moment float64) float64 { return moment - f.release }

// readSwarms reads what the trials recorded of their nodes. An operation is a
// leecher's fetch, until its last verified byte.
func (r *Report) readSwarms(in *input) {
	r.swarms = map[int64]*spread{}
	events := map[int64][]record.Event{}
	for _, e := range in.events {
		if e.Trial != 0 && (e.Kind == "fault" || e.Kind == "node") {
			events[e.Trial] = append(events[e.Trial], e)
		}
	}
	for i := range in.trials {
		t := &in.trials[i]
		if t.State != record.Done {
			continue
		}
		s := &spread{events: events[t.ID], epoch: t.Epoch.UnixNano(), release: math.Inf(1)}
		for op, err := range in.ops(t.ID) {
			if err != nil {
				in.err = err
				return
			}
			f := fetchedOf(op)
			s.leechers = append(s.leechers, f)
			s.size, s.release, s.end = max(s.size, float64(op.Length)), min(s.release, f.release), max(s.end, f.end)
		}
		if len(s.leechers) == 0 {
			continue // of a damaged directory, or none was released
		}
		slices.SortStableFunc(s.leechers, func(a, b fetched) int { return cmp.Compare(a.node, b.node) })
		s.nodes = nodesOf(t.Details)
		if err := s.follow(in, t.ID); err != nil {
			in.err = err
			return
		}
		r.swarms[t.ID] = s
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func fetchedOf(op record.Op) fetched {
	f := fetched{node: int(op.Worker), release: seconds(op.Intended), first: math.NaN(), done: math.NaN(), disk: math.NaN(), end: seconds(op.LastByte), outcome: op.Outcome, class: op.Class, got: float64(op.Bytes)}
	for i := range f.reached {
		f.reached[i] = math.NaN()
	}
	if op.FirstByte > 0 {
		f.first = seconds(op.FirstByte)
	}
	if op.Outcome == record.OK {
		f.done = f.end
		f.reached[len(shares)-1] = f.end
	}
	return f
}

// follow reads the marks of a trial: how far each leecher was when.
func (s *spread) follow(in *input, trial int64) error {
	for i := range s.together {
		s.together[i] = math.NaN()
	}
	at := map[int]*fetched{}
	all := 0.0
	for i := range s.leechers {
		f := &s.leechers[i]
		at[f.node] = f
		if f.wanted() {
			all += s.size
		}
	}
	have, sum := map[int]float64{}, 0.0
	var marks []record.Mark
	for m, err := range in.marks(trial) {
		if err != nil {
			return err
		}
		// Who was decided about is asked once more after the load: what it tells then
		// came after its end.
		if f := at[m.Node]; f != nil && (f.outcome == record.OK || m.End.Seconds() <= f.end+1e-9) {
			marks = append(marks, m)
		}
	}
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	for _, m := range marks {
		f, v := at[m.Node], min(float64(m.Verified), s.size)
		switch {
		case v < s.size: // all that was there before is lost
			f.disk = math.NaN()
		case f.outcome == record.OK && math.IsNaN(f.disk) && m.Complete && (m.Written < 0 || float64(m.Written) >= s.size):
			f.disk = m.End.Seconds()
		}
		for i, share := range shares[:len(shares)-1] {
			// Content that is verified wrong was never there: what such a leecher
			// reached first counts for nothing, see below.
			if math.IsNaN(f.reached[i]) && v >= share*s.size && v > 0 {
				f.reached[i] = m.End.Seconds()
			}
		}
		if f.wanted() && f.outcome != record.WrongBytes {
			sum += v - have[m.Node]
			have[m.Node] = v
			for i, share := range shares {
				if math.IsNaN(s.together[i]) && all > 0 && sum >= share*all {
					s.together[i] = m.End.Seconds()
				}
			}
		}
	}
	for i := range s.leechers {
		f := &s.leechers[i]
		if !math.IsNaN(f.disk) {
			s.end = max(s.end, f.disk)
		}
		if f.outcome == record.WrongBytes {
			for k := range f.reached {
				f.reached[k] = math.NaN()
			}
		}
	}
	if last := s.last(); len(marks) == 0 || math.IsNaN(s.together[len(shares)-1]) && !math.IsNaN(last) {
		s.together[len(shares)-1] = last
	}
	return nil
}

// last is when the last of the leechers that were wanted had everything; NaN when
// one of them never had.
func (s *spread) last() float64 {
	last := math.NaN()
	for i := range s.leechers {
		f := &s.leechers[i]
		switch {
		case !f.wanted():
		case math.IsNaN(f.done):
			return math.NaN()
		default:
			last = math.Max(f.done, orZero(last))
		}
	}
	return last
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(-1)
	}
	return v
}

// nodesOf takes the nodes of a trial from its details: one of each kind per
// node, in the order of the cluster's nodes. What is not known is negative.
func nodesOf(details []record.Detail) []swarmNode {
	values, at := detailsByKind(details)
	var all []swarmNode
	for i, d := range values[record.DetailSeeder] {
		if d.Value < 0 {
			continue // it took no part
		}
		all = append(all, swarmNode{node: i, name: d.Name, seeder: d.Value == 1, received: at(record.DetailLinkReceived, i), sent: at(record.DetailLinkSent, i),
			cpu: at(record.DetailNodeCPU, i), rss: at(record.DetailNodeRSS, i)})
	}
	return all
}

// reach is the time in which the q-th share of a trial's leechers came to a
// moment of theirs, +Inf when it did not. Who failed never would have; who was cut off, by the deadline
// or on purpose, is known to have taken longer than it was watched.
func (s *spread) reach(q float64, moment func(*fetched) float64) float64 {
	var all []stats.Lifetime
	for i := range s.leechers {
		f := &s.leechers[i]
		l := stats.Lifetime{Time: f.after(f.end)}
		if m := moment(f); !math.IsNaN(m) {
			l = stats.Lifetime{Time: f.after(m), Happened: true}
		} else if f.outcome.ServerFailure() {
			l.Time = math.Inf(1)
		}
		all = append(all, l)
	}
	return stats.ProductLimit(all, q)
}
