package studylog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// experiment is what was found of one experiment of the study: a system, a size,
// a number of nodes and of seeders, and several disseminations one after another.
type experiment struct {
	stream   stream
	config   *config // nil: its record was not found
	requests []entry
	stages   []entry
	statuses []entry

	metrics pile
	trials  []*trial
}

func (x *experiment) empty() bool {
	return len(x.requests)+len(x.stages)+len(x.statuses)+len(x.metrics) == 0
}

// metric is a download metric: there are millions of them.
type metric struct {
	node, dataset, file uint32 // places in the gatherer's names
	at                  int64  // ns since 1970
	value               float64
}

// pile is metrics in pieces, so that it grows without being copied and shrinks
// while it is read.
type pile [][]metric

func (p *pile) add(m metric) {
	if n := len(*p); n == 0 || len((*p)[n-1]) == cap((*p)[n-1]) {
		*p = append(*p, make([]metric, 0, min(1<<14, 64<<n)))
	}
	last := &(*p)[len(*p)-1]
	*last = append(*last, m)
}

func (p *pile) empty(use func(metric)) {
	for i, piece := range *p {
		for _, m := range piece {
			use(m)
		}
		(*p)[i] = nil
	}
	*p = nil
}

// trial is one dissemination: the leechers of one repetition, once.
type trial struct {
	dataset         string
	set, repetition int
	file            string
	first           time.Time // its first request
	seeded          map[string]*span
	leechers        map[string]*span
	metrics         map[string][]metric // by node, in the order of their times
	stages          []stage
	status          *entry
}

// span is a request, or another thing that begins and ends; a time that was not
// recorded is zero.
type span struct{ start, end time.Time }

type stage struct {
	name string
	span
	err string
}

// gatherer puts records together.
type gatherer struct {
	counts      Counts
	experiments []*experiment
	current     map[string]*experiment // by the name of the stream
	pool        pile                   // of streams that are not labelled
	names       []string
	place       map[string]uint32
	held        int // bytes, at most about
}

// room is how much of the records is held in memory, in bytes; tests have less.
var room = 200 << 20

// ErrTooMuch is of files with more records than can be held.
var ErrTooMuch = errors.New("more records than an import can hold")

func (g *gatherer) intern(name string) uint32 {
	i, ok := g.place[name]
	if !ok {
		name = strings.Clone(name) // which may be a part of something longer
		g.held += 100 + len(name)
		i = uint32(len(g.names))
		g.names = append(g.names, name)
		g.place[name] = i
	}
	return i
}

// take is what the reader calls with each record.
func (g *gatherer) take(s stream, e entry) error {
	if g.held > room {
		return fmt.Errorf("%w: they take more than %d MiB", ErrTooMuch, room>>20)
	}
	g.held += int(unsafe.Sizeof(metric{}))
	if e.Type != typeDownload {
		g.held += 500 + 8*e.size // what a node of a configuration takes, which is written in few bytes
	}
	x := g.current[s.name]
	if x == nil || e.config != nil && x.config != nil && !(s.labelled && sameConfig(x.config, e.config)) && !x.empty() {
		g.held += 1000 + len(s.name)
		x = &experiment{stream: s}
		g.current[s.name] = x
		g.experiments = append(g.experiments, x)
	}
	switch e.Type {
	case typeRequest:
		x.requests = append(x.requests, e)
	case typeStage:
		x.stages = append(x.stages, e)
	case typeStatus:
		x.statuses = append(x.statuses, e)
	case typeDownload:
		m := metric{g.intern(e.Node), g.intern(datasetOf(e.Dataset)), g.intern(s.file), e.Timestamp.UnixNano(), float64(*e.Value)}
		if s.labelled {
			x.metrics.add(m)
		} else {
			g.pool.add(m)
		}
	default:
		x.config = e.config
	}
	return nil
}

func sameConfig(a, b *config) bool {
	return a.SetID == b.SetID && a.System == b.System && a.FileSize == b.FileSize && a.Seeders == b.Seeders && a.Nodes.Size == b.Nodes.Size &&
		a.Repetitions == b.Repetitions && a.SeederSets == b.SeederSets
}

// assemble makes trials of what was gathered.
func (g *gatherer) assemble() {
	g.experiments = merge(g.experiments)
	owners := map[string][]*trial{} // by dataset
	nodes := map[*trial]map[string]bool{}
	for _, x := range g.experiments {
		g.split(x)
		known := map[string]bool{}
		if x.config != nil {
			for _, n := range x.config.Nodes.Names {
				known[n] = true
			}
		}
		for _, t := range x.trials {
			nodes[t] = maps.Clone(known)
			for n := range t.leechers {
				nodes[t][n] = true
			}
			for n := range t.seeded {
				nodes[t][n] = true
			}
		}
	}
	for _, x := range g.experiments {
		own := map[string][]*trial{}
		for _, t := range x.trials {
			own[t.dataset] = append(own[t.dataset], t)
			owners[t.dataset] = append(owners[t.dataset], t)
		}
		x.metrics.empty(func(m metric) {
			if t := latest(own[g.names[m.dataset]], m.at, nil); t != nil {
				t.metrics[g.names[m.node]] = append(t.metrics[g.names[m.node]], m)
			} else {
				g.counts.Homeless++
			}
		})
	}
	g.pool.empty(func(m metric) {
		node, file := g.names[m.node], g.names[m.file]
		// Experiments in two files may have nodes of the same names: those of the
		// metric's own file that had begun come first.
		t := latest(owners[g.names[m.dataset]], m.at, func(t *trial) bool { return t.file == file && nodes[t][node] && t.first.UnixNano() <= m.at })
		if t == nil {
			t = latest(owners[g.names[m.dataset]], m.at, func(t *trial) bool { return nodes[t][node] })
		}
		if t != nil {
			t.metrics[node] = append(t.metrics[node], m)
		} else {
			g.counts.Homeless++
		}
	})
	for _, x := range g.experiments {
		for _, t := range x.trials {
			for node, all := range t.metrics {
				slices.SortStableFunc(all, func(a, b metric) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.value, b.value))
				})
				once := slices.Compact(all)
				g.counts.Duplicates += int64(len(all) - len(once))
				g.counts.Records += int64(len(once))
				t.metrics[node] = once
			}
		}
	}
}

// latest is the trial that had begun last by then; the first one where a clock
// says that none had.
func latest(trials []*trial, at int64, fits func(*trial) bool) *trial {
	var best, first *trial
	for _, t := range trials {
		if fits != nil && !fits(t) {
			continue
		}
		if begun := t.first.UnixNano(); begun <= at && (best == nil || begun > best.first.UnixNano()) {
			best = t
		}
		if first == nil || t.first.Before(first.first) {
			first = t
		}
	}
	if best == nil {
		return first
	}
	return best
}

// merge makes one of experiments that are the same, as when a log was given
// twice: with the same configuration and a request in common. Their streams are
// put one after the other; what is there twice is found later.
func merge(all []*experiment) []*experiment {
	type key struct {
		set, system, destination, request string
		at                                int64
	}
	seen := map[key]*experiment{}
	var kept []*experiment
	for _, x := range all {
		var into *experiment
		keys := make([]key, len(x.requests))
		for i, e := range x.requests {
			k := key{destination: e.Destination, request: e.Name + e.Boundary + e.RequestID, at: e.Timestamp.UnixNano()}
			if x.config != nil {
				k.set, k.system = x.config.SetID, x.config.System
			}
			if keys[i] = k; seen[k] != nil {
				into = seen[k]
			}
		}
		if into == nil {
			into = x
			kept = append(kept, x)
		} else {
			into.requests = append(into.requests, x.requests...)
			into.stages = append(into.stages, x.stages...)
			into.statuses = append(into.statuses, x.statuses...)
			into.metrics = append(into.metrics, x.metrics...)
		}
		for _, k := range keys {
			seen[k] = into
		}
	}
	return kept
}

// ordered sorts records by their times and leaves out those that are there twice.
func (g *gatherer) ordered(all []entry, same func(a, b *entry) bool) []entry {
	slices.SortStableFunc(all, func(a, b entry) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	var once []entry
	for _, e := range all {
		twice := false
		for i := len(once) - 1; i >= 0 && once[i].Timestamp.Equal(e.Timestamp.Time); i-- {
			twice = twice || same(&once[i], &e)
		}
		if twice {
			g.counts.Duplicates++
			continue
		}
		once = append(once, e)
		g.counts.Records++
	}
	return once
}

// split finds the trials of an experiment in its requests.
func (g *gatherer) split(x *experiment) {
	if x.config != nil {
		g.counts.Records++
	}
	x.requests = g.ordered(x.requests, func(a, b *entry) bool {
		return a.Name == b.Name && a.Boundary == b.Boundary && a.Destination == b.Destination && a.RequestID == b.RequestID
	})
	x.stages = g.ordered(x.stages, func(a, b *entry) bool { return a.Stage == b.Stage && a.Boundary == b.Boundary })
	x.statuses = g.ordered(x.statuses, func(a, b *entry) bool { return *a.Repetition == *b.Repetition })

	open := map[string]*trial{}
	for _, e := range x.requests {
		dataset := datasetOf(e.RequestID)
		t := open[dataset]
		begins := e.Boundary == "start" && t != nil && (e.Name == requestSeed && len(t.leechers) > 0 || e.Name == requestLeech && t.leechers[e.Destination] != nil && !t.leechers[e.Destination].start.IsZero())
		if t == nil || begins {
			t = &trial{dataset: dataset, file: x.stream.file, first: e.Timestamp.Time, seeded: map[string]*span{}, leechers: map[string]*span{}, metrics: map[string][]metric{}}
			t.set, t.repetition, _ = setAndRepetition(dataset)
			open[dataset] = t
			x.trials = append(x.trials, t)
		}
		of := t.leechers
		if e.Name == requestSeed {
			of = t.seeded
		} else if e.Name != requestLeech {
			continue
		}
		if of[e.Destination] == nil {
			of[e.Destination] = &span{}
		}
		if s := of[e.Destination]; e.Boundary == "start" {
			s.start = e.Timestamp.Time
		} else {
			s.end = e.Timestamp.Time
		}
	}
	x.spread()
}

// spread gives stages and results, which do not name a data set, to the trials
// of which they are, by their times: the disseminations of an experiment follow
// one another.
func (x *experiment) spread() {
	for i, t := range x.trials {
		until := time.Unix(1<<40, 0)
		if i+1 < len(x.trials) {
			until = x.trials[i+1].first
			// A trial's stage of seeding begins just before its first request.
			for _, e := range x.stages {
				if e.Stage == "seeding" && e.Boundary == "start" && e.Timestamp.After(t.first) && e.Timestamp.Before(until) {
					until = e.Timestamp.Time
				}
			}
		}
		from := time.Time{}
		if i > 0 {
			from = x.trials[i-1].first
			for _, e := range x.stages {
				if e.Stage == "seeding" && e.Boundary == "start" && !e.Timestamp.After(t.first) && e.Timestamp.After(from) {
					from = e.Timestamp.Time
				}
			}
			if from.Equal(x.trials[i-1].first) {
				from = t.first
			}
		}
		for _, e := range x.stages {
			if e.Timestamp.Before(from) || !e.Timestamp.Before(until) {
				continue
			}
			at := slices.IndexFunc(t.stages, func(s stage) bool { return s.name == e.Stage && s.end.IsZero() })
			switch {
			case e.Boundary == "start":
				t.stages = append(t.stages, stage{name: e.Stage, span: span{start: e.Timestamp.Time}})
				continue
			case at < 0:
				t.stages = append(t.stages, stage{name: e.Stage})
				at = len(t.stages) - 1
			}
			t.stages[at].end = e.Timestamp.Time
			if e.Error != nil {
				t.stages[at].err = *e.Error
			}
		}
		for k := range x.statuses {
			if s := &x.statuses[k]; !s.Timestamp.Before(t.first) && s.Timestamp.Before(until) {
				t.status = s
			}
		}
	}
}

// stage is the trial's stage of a name; nil when nothing of it was recorded.
func (t *trial) stage(name string) *stage {
	for i := range t.stages {
		if t.stages[i].name == name {
			return &t.stages[i]
		}
	}
	return nil
}

// nodes are the names of all nodes of an experiment: as configured, then others
// that trials name.
func (x *experiment) nodes() []string {
	names := slices.Clone(x.config.Nodes.Names)
	var more []string
	for _, t := range x.trials {
		for _, n := range slices.Concat(slices.Collect(maps.Keys(t.seeded)), slices.Collect(maps.Keys(t.leechers))) {
			if !slices.Contains(names, n) && !slices.Contains(more, n) {
				more = append(more, n)
			}
		}
	}
	slices.SortFunc(more, natural)
	if len(names) > 0 && len(more) >= len(names) {
		return more // the configuration has other names for them
	}
	return append(names, more...)
}

// natural compares names so that node-2 comes before node-10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
