package studylog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// experiment is one experiment of the study: a system, a size, a number of nodes and of seeders,
// and several disseminations one after another.
type experiment struct {
	stream  stream
	config  *config // nil: its record was not found
	records []entry // requests, stages and results
	trials  []*trial
}

// trial is one dissemination: the leechers of one repetition, once.
type trial struct {
	of              *experiment
	dataset         string
	set, repetition int
	first           time.Time // its first request
	seeded          map[string]*span
	leechers        map[string]*span
	progress        map[string][]sample // by node, in temporal order
	said            []entry             // by the runner: stages and results
}

// span is a request or another period; a time that was not recorded is zero.
type span struct{ start, end time.Time }

// sample is a download metric: there are millions of them.
type sample struct {
	at    int64 // ns since 1970
	value float64
}

// source is the origin of samples.
type source struct {
	stream
	dataset, node string
}

// gatherer finds the records in logs and in the tables into which the study's program splits them,
// and collects them into experiments.
type gatherer struct {
	ctx         context.Context
	counts      Counts
	experiments []*experiment
	current     map[string]*experiment // by the name of the stream
	samples     map[source][]sample
}

// take takes a record, or counts that it cannot be used.
func (g *gatherer) take(s stream, e entry, usable bool) {
	if !usable {
		g.counts.Unused++
		return
	}
	if e.Type == typeDownload {
		dataset, _, _ := datasetOf(e.Dataset)
		from := source{s, dataset, e.Node}
		g.samples[from] = append(g.samples[from], sample{e.Timestamp.UnixNano(), *e.Value})
		return
	}
	x := g.current[s.name]
	if x == nil || e.config != nil && x.config != nil && len(x.records) > 0 &&
		!(s.labelled && reflect.DeepEqual(x.config, e.config)) {
		x = &experiment{stream: s}
		g.current[s.name] = x
		g.experiments = append(g.experiments, x)
	}
	if e.config != nil {
		x.config = e.config
	} else {
		x.records = append(x.records, e)
	}
}

// assemble creates trials from the collected records.
func (g *gatherer) assemble() error {
	if err := twice(g.experiments); err != nil {
		return err
	}
	trials := map[string][]*trial{} // by data set
	nodes := map[*trial][]string{}
	for _, x := range g.experiments {
		g.split(x)
		for _, t := range x.trials {
			trials[t.dataset], nodes[t] = append(trials[t.dataset], t), x.nodesOf(t)
		}
	}
	for _, all := range trials {
		slices.SortStableFunc(all, func(a, b *trial) int { return a.first.Compare(b.first) })
	}
	for from, all := range g.samples {
		candidates := slices.DeleteFunc(slices.Clone(trials[from.dataset]), func(t *trial) bool {
			return from.labelled && t.of.stream.name != from.name || !from.labelled && !slices.Contains(nodes[t], from.node)
		})
		if len(candidates) == 0 {
			g.counts.Unused += int64(len(all))
			continue
		}
		for _, m := range all {
			t := owner(candidates, from.file, m.at)
			t.progress[from.node] = append(t.progress[from.node], m)
		}
		delete(g.samples, from)
	}
	for t := range nodes {
		for node, all := range t.progress {
			slices.SortFunc(all, func(a, b sample) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.value, b.value))
			})
			once := slices.Compact(all)
			g.counts.Duplicates += int64(len(all) - len(once))
			g.counts.Records += int64(len(once))
			t.progress[node] = once
		}
	}
	return nil
}

// owner returns the latest trial that had begun at that time, of those in the same file if there
// are any: experiments in two files may have nodes with the same names. If none had begun by the
// clock, it is the first. Trials are in the order of their beginnings.
func owner(trials []*trial, file string, at int64) *trial {
	var begun *trial
	for _, t := range slices.Backward(trials) {
		if t.first.UnixNano() > at {
			continue
		}
		if t.of.stream.file == file {
			return t
		}
		begun = cmp.Or(begun, t)
	}
	return cmp.Or(begun, trials[0])
}

// twice returns an error if two experiments are the same (with the same configuration and a request
// in common), as when a log was given twice.
func twice(all []*experiment) error {
	seen := map[string]*experiment{}
	for _, x := range all {
		set := ""
		if x.config != nil {
			set = fmt.Sprintf("%q %q ", x.config.SetID, x.config.System)
		}
		for _, e := range x.records {
			if e.Type != typeRequest {
				continue
			}
			if of := seen[set+e.id()]; of != nil && of != x {
				return fmt.Errorf("%s and %s hold the same experiment; import one of them", of.stream.name, x.stream.name)
			}
			seen[set+e.id()] = x
		}
	}
	return nil
}

// id is the same for duplicate records.
func (e entry) id() string {
	id := fmt.Sprintf("%d %s %q %q %q %q %q", e.Timestamp.UnixNano(), e.Type, e.Name, e.Boundary, e.Destination,
		e.RequestID, e.Stage)
	if e.Repetition != nil {
		id += fmt.Sprint(*e.Repetition)
	}
	return id
}

// ordered sorts records by time and removes duplicates.
func (g *gatherer) ordered(all []entry) []entry {
	seen := map[string]bool{}
	once := slices.DeleteFunc(all, func(e entry) bool {
		id := e.id()
		there := seen[id]
		seen[id] = true
		return there
	})
	g.counts.Duplicates += int64(len(all) - len(once))
	g.counts.Records += int64(len(once))
	slices.SortStableFunc(once, func(a, b entry) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return once
}

// split finds the trials of an experiment in its requests.
func (g *gatherer) split(x *experiment) {
	if x.config != nil {
		g.counts.Records++
	}
	x.records = g.ordered(x.records)
	open := map[string]*trial{} // by data set
	for _, e := range x.records {
		if e.Type != typeRequest {
			continue
		}
		dataset, set, repetition := datasetOf(e.RequestID)
		t := open[dataset]
		again := e.Boundary == "start" && t != nil && (e.Name == requestSeed && len(t.leechers) > 0 ||
			e.Name == requestLeech && t.leechers[e.Destination] != nil && !t.leechers[e.Destination].start.IsZero())
		if t == nil || again {
			t = &trial{of: x, dataset: dataset, set: set, repetition: repetition, first: e.Timestamp.Time,
				seeded: map[string]*span{}, leechers: map[string]*span{}, progress: map[string][]sample{}}
			open[dataset] = t
			x.trials = append(x.trials, t)
		}
		of := map[string]map[string]*span{requestSeed: t.seeded, requestLeech: t.leechers}[e.Name]
		if of == nil {
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
	x.assignStages()
}

// assignStages assigns stages and results, which do not name a data set, to trials by time:
// disseminations follow one another, and each begins just before its first request, with the
// seeding stage.
func (x *experiment) assignStages() {
	begins := make([]time.Time, len(x.trials))
	for i, t := range x.trials {
		if i == 0 {
			continue
		}
		begins[i] = t.first
		for _, e := range x.records {
			if e.Stage == "seeding" && e.Boundary == "start" && e.Timestamp.After(x.trials[i-1].first) &&
				!e.Timestamp.After(t.first) {
				begins[i] = e.Timestamp.Time
			}
		}
	}
	for _, e := range x.records {
		for i, t := range slices.Backward(x.trials) {
			if e.Type != typeRequest && !e.Timestamp.Before(begins[i]) {
				t.said = append(t.said, e)
				break
			}
		}
	}
}

// nodesOf returns the names of the nodes of an experiment's trials: configured ones, then those
// that only the trials name.
func (x *experiment) nodesOf(trials ...*trial) []string {
	var names []string
	if x.config != nil {
		names = slices.Clone(x.config.Nodes.Names)
	}
	configured := len(names)
	for _, t := range trials {
		for _, of := range []map[string]*span{t.seeded, t.leechers} {
			for n := range of {
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
	}
	slices.SortFunc(names[configured:], natural)
	return names
}

// nodes returns the names of all nodes of an experiment.
func (x *experiment) nodes() []string {
	names, configured := x.nodesOf(x.trials...), len(x.config.Nodes.Names)
	if configured > 0 && len(names) >= 2*configured {
		return names[configured:] // the configuration has other names for them
	}
	return names
}

// natural compares names so that node-2 comes before node-10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")),
		cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// cellKey identifies the cell of an experiment.
type cellKey struct {
	system         string
	size           int64
	nodes, seeders int
}

func (x *experiment) cell() cellKey {
	return cellKey{x.config.System, x.config.FileSize, x.config.Nodes.Size, x.config.Seeders}
}

// blocksOf returns the blocks of the trials of these experiments, which are in temporal order.
// Systems are compared by data set: the same seeder set and repetition are the same block, even
// if earlier ones are missing. Several experiments of one cell follow each other. A trial whose
// block is taken, or beyond the plan, gets the next free one.
func blocksOf(all []*experiment) map[*trial]int {
	type place struct {
		cellKey
		block int
	}
	blocks, taken, from := map[*trial]int{}, map[place]bool{}, map[cellKey]int{}
	for _, x := range all {
		k := x.cell()
		for _, t := range x.trials {
			planned := t.set*x.config.Repetitions + t.repetition
			p := place{k, from[k] + planned}
			if t.repetition < x.config.Repetitions && planned < x.config.trials() && !taken[p] {
				blocks[t], taken[p] = p.block, true
			}
		}
		from[k] += max(x.config.trials(), len(x.trials))
	}
	for _, x := range all {
		for _, t := range x.trials {
			p := place{cellKey: x.cell()}
			for taken[p] {
				p.block++
			}
			if _, has := blocks[t]; !has {
				blocks[t], taken[p] = p.block, true
			}
		}
	}
	return blocks
}

// Classes of leechers with an unknown end.
const (
	classLost  = "its last records are missing"
	classCut   = "its end was not recorded"
	classEnded = "the trial ended in an error"
)

// inTime is part of the message of the study's runner if a download took too long.
const inTime = "did not complete in time"

// fetch is what the log says about one leecher.
type fetch struct {
	op      record.Op
	marks   []record.Mark
	earlier time.Duration // by how much its first record precedes its request, because clocks disagree
}

// fetchOf evaluates a leecher's records. The trial's epoch is the first request of any of its
// leechers; lastSeen is the last record of any of them.
func (t *trial) fetchOf(c *config, name string, node int, epoch, lastSeen time.Time) fetch {
	begun := time.Duration(0)
	if start := t.leechers[name].start; !start.IsZero() {
		begun = start.Sub(epoch)
	}
	f := fetch{op: record.Op{Kind: record.OpFetch, Worker: uint32(node), Length: c.FileSize, Intended: int64(begun),
		Start: int64(begun)}}
	pieces, last, percent := map[int64]bool{}, begun, int64(-1)
	all := t.progress[name]
	for i, m := range all {
		at := time.Duration(m.at - epoch.UnixNano())
		f.earlier = max(f.earlier, begun-at)
		at = max(at, begun, 1) // a first byte at 0 would be none
		if i == 0 {
			f.op.FirstByte = int64(at)
		}
		if c.Unit == 1 { // bytes
			f.op.Bytes = max(f.op.Bytes, wholeAt(int64(math.Round(m.value)), c.FileSize))
		} else {
			pieces[int64(math.Round(m.value))] = true // one that was bad comes again
			f.op.Bytes = min(int64(len(pieces))*c.Unit, c.FileSize)
		}
		if i+1 < len(all) && all[i+1].at == m.at {
			continue // what has the same time is one mark
		}
		done := f.op.Bytes == c.FileSize
		if now := f.op.Bytes * 100 / c.FileSize; now > percent || done || i == len(all)-1 {
			percent = now
			f.marks = append(f.marks, record.Mark{Node: node, Before: last, Start: at, End: at, Verified: f.op.Bytes,
				Written: -1, Received: -1, Sent: -1, Peers: -1, Complete: done})
		}
		if last = at; done {
			break
		}
	}
	if f.op.Bytes < c.FileSize {
		f.op.Outcome, f.op.Class = t.fate()
		if f.op.Class != classLost { // it was watched on in vain
			last = max(last, lastSeen.Sub(epoch))
		}
	}
	f.op.LastByte = int64(last)
	return f
}

// fate returns the outcome of a leecher that did not complete.
func (t *trial) fate() (record.Outcome, string) {
	completed, failed := false, ""
	for _, e := range t.said {
		completed = completed || e.Stage == "downloading" && e.Boundary == "end" && e.Error == ""
		if e.Error != "" && e.Stage != "deleting" {
			failed = e.Error
		}
	}
	switch {
	case completed:
		return record.InFlight, classLost
	case strings.Contains(failed, inTime):
		return record.Deadline, "deadline"
	case failed != "":
		return record.InFlight, classEnded
	}
	return record.InFlight, classCut
}

// wholeAt returns how much of a file a leecher has if it reports so many bytes. The study's agents
// report whole percents, rounded down, and never the remainder.
func wholeAt(bytes, size int64) int64 {
	step := max(1, size/100)
	if bytes >= size/step*step {
		return size
	}
	return bytes
}
