package studylog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Format is how the log is called where a run says what it was imported from.
const Format = "log of bittorrent-benchmarks"

// unknown is what such a log does not contain.
var unknown = [...]string{
	"the links were neither shaped nor measured",
	"the content was not verified: a leecher is complete when its records say so",
	"processor time, memory and the traffic of nodes were not recorded, nor versions",
	"the clocks of the nodes were taken to be equal to the runner's",
	"leechers were started one by one: each is timed from its own request",
	"when the content was on disk was not recorded",
}

// Options are of an import.
type Options struct {
	Dir     string          // the run directory to make
	Version string          // of this program
	Metrics []record.Metric // definitions of the scenario disseminate
}

// Result is what an import did.
type Result struct {
	Counts      Counts
	Experiments int
	Trials      int
	Leechers    int
	Unfinished  int      // leechers that did not complete, or of which it is not known
	Absent      int      // trials that an experiment was to have, and of which there is no record
	Left        []string // experiments that could not be used, and why
}

// ErrNothing is of files in which there is no experiment.
var ErrNothing = errors.New("no experiment was found")

// Import reads logs of the study and makes a run directory of them. Everything
// that is recorded of an experiment is in it: trials that failed and leechers
// that did not complete, too.
func Import(ctx context.Context, files []string, o Options) (*Result, error) {
	g := &gatherer{current: map[string]*experiment{}, place: map[string]uint32{}}
	rd := &reader{ctx: ctx, counts: &g.counts, take: g.take}
	for _, f := range files {
		if err := rd.path(f); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	g.assemble()
	res := &Result{}
	var usable []*experiment
	for _, x := range g.experiments {
		switch {
		case x.config == nil && len(x.requests)+len(x.stages)+len(x.statuses) > 0:
			res.Left = append(res.Left, fmt.Sprintf("%s: %d records of an experiment whose configuration is not there: how large its files were is not known", x.stream.name, len(x.requests)+len(x.stages)+len(x.statuses)))
		case x.config != nil && len(x.trials) == 0:
			res.Left = append(res.Left, fmt.Sprintf("%s (%s): a configuration without a single request", x.config.SetID, x.stream.name))
		case x.config != nil:
			usable = append(usable, x)
		}
	}
	res.Counts = g.counts
	if len(usable) == 0 {
		return res, fmt.Errorf("import: %s: %w%s", strings.Join(files, ", "), ErrNothing, because(res))
	}
	slices.SortStableFunc(usable, func(a, b *experiment) int { return a.trials[0].first.Compare(b.trials[0].first) })
	p, cells, err := planOf(usable, files, o, res)
	if err != nil {
		return res, err
	}
	raw, err := p.Marshal()
	if err != nil {
		return res, err
	}
	run, err := record.Create(o.Dir, raw, map[string]string{"version": o.Version, "imported": says(p.Imported)}, o.Metrics)
	if err != nil {
		return res, err
	}
	if err := write(ctx, run, usable, cells, res); err != nil {
		return res, errors.Join(err, run.Close())
	}
	return res, run.Close()
}

// says is what a report says about where the numbers are from.
func says(i *plan.Imported) string {
	return fmt.Sprintf("%s (%s); %s; %s", i.Format, strings.Join(i.From, ", "), strings.Join(i.Unknown, "; "), strings.Join(i.Notes, "; "))
}

func because(res *Result) string {
	words := res.Counts.words()
	if len(res.Left) > 0 {
		words = append(words, res.Left...)
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, "; ")
}

// words says what was left out of the records, and why.
func (c *Counts) words() []string {
	words := []string{fmt.Sprintf("%d records in %d lines of %d files", c.Records, c.Lines, c.Files)}
	say := func(n int64, what string) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(c.Duplicates, "records that were there already")
	say(c.Cut, "records that are cut off")
	say(c.Incomplete, "records without what their type must have")
	say(c.Homeless, "download metrics of which no experiment is known")
	for _, kind := range slices.Sorted(maps.Keys(c.Unknown)) {
		say(c.Unknown[kind], fmt.Sprintf("records of the unknown type %q", kind))
	}
	if len(c.CutFiles) > 0 {
		words = append(words, "files that end too early: "+strings.Join(c.CutFiles, ", "))
	}
	return words
}

// Words is the result in sentences for the user.
func (r *Result) Words() []string {
	words := []string{fmt.Sprintf("%d experiments, %d trials, %d leechers (%d of them unfinished)", r.Experiments, r.Trials, r.Leechers, r.Unfinished)}
	if r.Absent > 0 {
		words = append(words, fmt.Sprintf("%d trials were planned of which there is no record", r.Absent))
	}
	words = append(words, r.Counts.words()...)
	for _, l := range r.Left {
		words = append(words, "left out: "+l)
	}
	return words
}

// cellKey is what makes a cell of an experiment.
type cellKey struct {
	system         string
	size           int64
	nodes, seeders int
}

func keyOf(x *experiment) cellKey {
	c := x.config
	return cellKey{c.System, c.FileSize, c.Nodes.Size, c.Seeders}
}

// planOf makes the plan that would have asked for these experiments.
func planOf(all []*experiment, files []string, o Options, res *Result) (*plan.Plan, map[cellKey]string, error) {
	var systems []string
	var sizes []int64
	var nodes, seeders []int
	planned, sets := map[cellKey]int{}, 0
	alike := map[cellKey]map[string]bool{}
	add := func(k cellKey) {
		if !slices.Contains(systems, k.system) {
			systems = append(systems, k.system)
		}
		if !slices.Contains(sizes, k.size) {
			sizes = append(sizes, k.size)
		}
		if !slices.Contains(nodes, k.nodes) {
			nodes = append(nodes, k.nodes)
		}
		if !slices.Contains(seeders, k.seeders) {
			seeders = append(seeders, k.seeders)
		}
	}
	for _, x := range all {
		k := keyOf(x)
		add(k)
		if alike[k] == nil {
			alike[k] = map[string]bool{}
		}
		alike[k][x.config.SetID] = true
		want := x.wanted()
		planned[k] += max(want, len(x.trials))
		there := map[string]bool{}
		for _, t := range x.trials {
			there[t.dataset] = true
		}
		res.Absent += max(0, want-len(there))
		sets = max(sets, x.config.SeederSets)
	}
	// The reference comes first, as a baseline does.
	baseline := ""
	if slices.Contains(systems, reference) && len(systems) > 1 {
		baseline = reference
	}
	slices.SortFunc(systems, func(a, b string) int {
		return cmp.Or(-compareBool(a == baseline, b == baseline), -compareBool(a == reference, b == reference), cmp.Compare(a, b))
	})
	slices.Sort(sizes)
	slices.Sort(nodes)
	slices.Sort(seeders)
	blocks := slices.Max(slices.Collect(maps.Values(planned)))

	var y bytes.Buffer
	fmt.Fprintf(&y, "scenario: disseminate\ntitle: %s, imported\n", Format)
	fmt.Fprintf(&y, "description: \"Imported, not measured by Plimsoll.\"\nsystems:\n")
	catalog := plan.Catalog{}
	for _, s := range systems {
		fmt.Fprintf(&y, "  - %q\n", s)
		catalog = append(catalog, plan.SystemSpec{Name: s, Modes: []string{"start"}, Spreads: true})
	}
	if baseline != "" && len(systems) > 1 {
		fmt.Fprintf(&y, "baseline: %q\n", baseline)
	}
	fmt.Fprintf(&y, "data: {size: [%s]}\n", join(sizes, "B"))
	fmt.Fprintf(&y, "link: {emulator: none}\n")
	fmt.Fprintf(&y, "disseminate: {nodes: [%s], seeders: [%s], seeder_sets: %d}\n", join(nodes, ""), join(seeders, ""), sets)
	fmt.Fprintf(&y, "where: [\"disseminate.seeders < disseminate.nodes\"]\nrepetitions: %d\nwarmup: 0\n", blocks)
	e, err := plan.Parse(Format, y.Bytes(), nil, catalog)
	if err != nil {
		return nil, nil, fmt.Errorf("import: the experiments do not make a plan: %w", err)
	}
	whole, err := e.Plan()
	if err != nil {
		return nil, nil, fmt.Errorf("import: the experiments do not make a plan: %w", err)
	}
	imported := plan.Imported{Format: Format, Unknown: unknown[:], Notes: res.Counts.words()}
	var merged []string
	for k, ids := range alike {
		if len(ids) > 1 {
			merged = append(merged, fmt.Sprintf("%s, %d seeders of %d nodes and %s: the experiments %s are one cell, since the log has no place for what else they may differ in", k.system, k.seeders, k.nodes, plan.Bytes(k.size), strings.Join(slices.Sorted(maps.Keys(ids)), ", ")))
		}
	}
	slices.Sort(merged)
	imported.Notes = append(imported.Notes, merged...)
	if res.Absent > 0 {
		imported.Notes = append(imported.Notes, fmt.Sprintf("%d trials were planned of which there is no record", res.Absent))
	}
	imported.Notes = append(imported.Notes, res.Left...)
	for _, f := range files {
		imported.From = append(imported.From, filepath.Base(f))
	}
	cellOf := func(c plan.Cell) cellKey {
		return cellKey{c.System, int64(c.Data.Size), c.Disseminate.Nodes, c.Disseminate.Seeders}
	}
	p, err := whole.Import(imported, func(c plan.Cell) bool { return planned[cellOf(c)] > 0 }, blocks)
	if err != nil {
		return nil, nil, fmt.Errorf("import: %w", err)
	}
	cells := map[cellKey]string{}
	for _, c := range p.Cells {
		cells[cellOf(c)] = c.ID
	}
	return p, cells, nil
}

// reference is the system that the study compares with.
const reference = "deluge"

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func join[T int | int64](values []T, unit string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%d%s", v, unit)
	}
	return strings.Join(words, ", ")
}

// write records all trials, in the order of their times.
func write(ctx context.Context, run *record.Run, all []*experiment, cells map[cellKey]string, res *Result) error {
	type one struct {
		x *experiment
		t *trial
	}
	var trials []one
	for _, x := range all {
		res.Experiments++
		for _, t := range x.trials {
			trials = append(trials, one{x, t})
		}
	}
	slices.SortStableFunc(trials, func(a, b one) int { return a.t.first.Compare(b.t.first) })
	blocks := blocksOf(all)
	for i, o := range trials {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if i == 0 {
			if err := run.Event(record.Event{At: o.t.first, Kind: "phase", What: "run begins", Detail: "imported"}); err != nil {
				return err
			}
		}
		if err := o.x.write(run, o.t, cells[keyOf(o.x)], blocks[o.t], res); err != nil {
			return err
		}
		if i == len(trials)-1 {
			return run.Event(record.Event{At: o.t.lastSeen(), Kind: "phase", What: "run ends", Detail: "imported"})
		}
	}
	return nil
}

// lastSeen is the last moment of which the trial has a record; what follows the
// downloads is not counted.
func (t *trial) lastSeen() time.Time {
	last := t.first
	see := func(at time.Time) {
		if at.After(last) {
			last = at
		}
	}
	for _, of := range []map[string]*span{t.seeded, t.leechers} {
		for _, s := range of {
			see(s.start)
			see(s.end)
		}
	}
	for name, all := range t.metrics {
		if t.leechers[name] != nil && len(all) > 0 {
			see(time.Unix(0, all[len(all)-1].at))
		}
	}
	for _, s := range t.stages {
		if s.name == "leeching" || s.name == "downloading" {
			see(s.start)
			see(s.end)
		}
	}
	return last
}

// write records one trial.
func (x *experiment) write(run *record.Run, t *trial, cell string, block int, res *Result) error {
	res.Trials++
	var epoch time.Time
	for _, s := range t.leechers {
		if !s.start.IsZero() && (epoch.IsZero() || s.start.Before(epoch)) {
			epoch = s.start
		}
	}
	timed := !epoch.IsZero()
	if !timed {
		epoch = t.first
	}
	w, err := run.Begin(cell, block, false, epoch)
	if err != nil {
		return err
	}
	if err := w.Event(record.Event{At: epoch, Kind: "note", What: "imported", Detail: fmt.Sprintf("%s of %s (%s)", t.dataset, x.config.SetID, x.stream.name)}); err != nil {
		return err
	}
	if err := x.events(w, t); err != nil {
		return err
	}
	if !timed {
		return w.Fail(fmt.Errorf("%s of %s: no request of a leecher was recorded%s", t.dataset, x.config.SetID, t.errorWords()))
	}
	names := x.nodes()
	var end record.Trial
	if words := t.errorWords(); words != "" {
		end.Notes = append(end.Notes, "the study's runner"+words)
	}
	var ops []record.Op
	var marks []record.Mark
	again, lost := 0, 0
	lastSeen := t.lastSeen()
	for node, name := range names {
		role := -1.0
		switch {
		case t.leechers[name] != nil:
			role = 0
		case t.seeded[name] != nil:
			role = 1
		}
		end.Details = append(end.Details, record.Detail{Kind: record.DetailSeeder, Name: name, Value: role})
		if role != 0 {
			continue
		}
		f := t.fetchOf(x.config, name, node, epoch, lastSeen)
		res.Leechers++
		if f.op.Outcome != record.OK {
			res.Unfinished++
		}
		if f.op.Class == classLost {
			lost++
		}
		if f.earlier > 0 {
			end.Notes = append(end.Notes, f.clockNote(name))
			if !slices.Contains(end.Invalid, record.ReasonClocks) {
				end.Invalid = append(end.Invalid, record.ReasonClocks)
			}
		}
		if t.leechers[name].start.IsZero() {
			end.Notes = append(end.Notes, fmt.Sprintf("the request of %s was not recorded: it is timed from the first of the others", name))
		}
		again += f.again
		ops = append(ops, f.op)
		marks = append(marks, f.marks...)
	}
	if want := x.config.Nodes.Size - x.config.Seeders; len(ops) != want {
		end.Notes = append(end.Notes, fmt.Sprintf("%d leechers have a record, %d were to be there", len(ops), want))
	}
	if again > 0 {
		end.Notes = append(end.Notes, fmt.Sprintf("%d pieces were downloaded more than once", again))
	}
	if lost > 0 {
		end.Notes = append(end.Notes, fmt.Sprintf("%d leechers completed by the runner's word and lack their last records: when they did is not known", lost))
	}
	slices.SortStableFunc(ops, func(a, b record.Op) int { return cmp.Compare(a.LastByte, b.LastByte) })
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	if err := w.Ops(ops); err != nil {
		return err
	}
	if err := w.Marks(marks); err != nil {
		return err
	}
	end.Metrics = measure(ops, x.config.FileSize)
	end.Seconds = time.Duration(ops[len(ops)-1].LastByte).Seconds()
	return w.End(end)
}

// errorWords is what the runner said of the trial's failure.
func (t *trial) errorWords() string {
	if t.status != nil && t.status.Error != nil {
		return " reports an error: " + *t.status.Error
	}
	for _, s := range t.stages {
		if s.err != "" {
			return " reports an error while " + s.name + ": " + s.err
		}
	}
	return ""
}

// events records the stages and the seeding.
func (x *experiment) events(w *record.TrialWriter, t *trial) error {
	for _, s := range t.stages {
		e := record.Event{At: s.start, Kind: "phase", What: s.name, Detail: s.err, Took: s.end.Sub(s.start)}
		switch {
		case s.start.IsZero():
			e.What, e.At, e.Took = s.name+eventEnds, s.end, 0
		case s.end.IsZero():
			e.What, e.Took = s.name+eventBegins, 0
		}
		if err := w.Event(e); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.seeded)) {
		s := t.seeded[name]
		if s.start.IsZero() {
			continue
		}
		took := time.Duration(0)
		if !s.end.IsZero() {
			took = s.end.Sub(s.start)
		}
		if err := w.Event(record.Event{At: s.start, Kind: "node", What: eventSeeded, Detail: name, Took: took}); err != nil {
			return err
		}
	}
	return nil
}

// Events of an imported trial.
const (
	eventSeeded = "seeded"  // a node was given the content
	eventBegins = " begins" // after the name of a stage of which no end was recorded
	eventEnds   = " ends"   // likewise, no beginning
)
