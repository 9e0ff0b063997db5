// Package studylog reads the logs of bittorrent-benchmarks, the study
// of Codex against Deluge. docs/study-logs.md describes the format.
package studylog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// Format names the kind of log in imported runs.
const Format = "log of bittorrent-benchmarks"

// reference is the system that the study compares with.
const reference = "deluge"

// unknown lists what such a log does not contain.
var unknown = []string{
	"the links were neither shaped nor measured",
	"the content was not verified: a leecher is complete when its records say so",
	"processor time, memory and the traffic of nodes were not recorded, nor versions",
	"the clocks of the nodes were taken to be equal to the runner's",
	"leechers were started one by one: each is timed from its own request",
}

// Options are of an import.
type Options struct {
	Dir     string                               // the run directory to make
	Version string                               // of this program
	Metrics []record.Metric                      // definitions of the scenario disseminate
	Measure func([]record.Op) map[string]float64 // computes those metrics that depend on operations
}

// Result is the result of an import.
type Result struct {
	Counts      Counts
	Experiments int
	Trials      int
	Leechers    int
	Unfinished  int      // leechers that did not complete, or may not have
	Absent      int      // planned trials without any record
	Left        []string // experiments that could not be used, and why
}

// ErrNothing means that the files contain no experiment.
var ErrNothing = errors.New("no experiment was found")

// Import reads logs of the study and creates a run directory from them. It contains everything
// that was recorded, including failed trials and leechers that did not complete.
func Import(ctx context.Context, files []string, o Options) (*Result, error) {
	g := &gatherer{ctx: ctx, current: map[string]*experiment{}, samples: map[source][]sample{}}
	for _, f := range files {
		if err := g.path(f); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	if err := g.assemble(); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	res := &Result{}
	var usable []*experiment
	for _, x := range g.experiments {
		switch {
		case x.config == nil && len(x.records) > 0:
			res.Left = append(res.Left, fmt.Sprintf("%s: %d records of an experiment whose configuration is not "+
				"there: how large its files were is not known", x.stream.name, len(x.records)))
		case x.config != nil && len(x.trials) == 0:
			res.Left = append(res.Left,
				fmt.Sprintf("%s (%s): a configuration without a single request", x.config.SetID, x.stream.name))
		case x.config != nil:
			usable = append(usable, x)
		}
	}
	res.Counts = g.counts
	if len(usable) == 0 {
		return res, fmt.Errorf("import: %s: %w: %s", strings.Join(files, ", "), ErrNothing,
			strings.Join(append([]string{res.Counts.words()}, res.Left...), "; "))
	}
	slices.SortStableFunc(usable, func(a, b *experiment) int { return a.trials[0].first.Compare(b.trials[0].first) })
	p, cells, err := planOf(usable, files, res)
	if err != nil {
		return res, fmt.Errorf("import: the experiments do not make a plan: %w", err)
	}
	raw, err := p.Marshal()
	if err != nil {
		return res, err
	}
	from := fmt.Sprintf("%s (%s); %s", Format, strings.Join(p.Imported.From, ", "),
		strings.Join(slices.Concat(unknown, p.Imported.Notes), "; "))
	run, err := record.Create(o.Dir, raw, map[string]string{"version": o.Version, "imported": from}, o.Metrics)
	if err != nil {
		return res, err
	}
	w := &writer{run: run, cells: cells, measure: o.Measure, res: res}
	return res, errors.Join(w.write(ctx, usable), run.Close())
}

// words says how many records were used, and how many were not.
func (c *Counts) words() string {
	return fmt.Sprintf("%s in %s of %s; %s, %s", words.Plural(c.Records, "record", "records"),
		words.Plural(c.Lines, "line", "lines"), words.Plural(c.Files, "file", "files"),
		words.Plural(c.Duplicates, "duplicate record", "duplicate records"),
		words.Plural(c.Unused, "record that could not be used", "records that could not be used"))
}

// Words returns the result in sentences for the user.
func (r *Result) Words() []string {
	said := []string{fmt.Sprintf("%s, %s, %s (%d unfinished)",
		words.Plural(int64(r.Experiments), "experiment", "experiments"), words.Plural(int64(r.Trials), "trial", "trials"),
		words.Plural(int64(r.Leechers), "leecher", "leechers"), r.Unfinished)}
	said = append(append(said, r.absent()...), r.Counts.words())
	for _, l := range r.Left {
		said = append(said, "left out: "+l)
	}
	return said
}

func (r *Result) absent() []string {
	if r.Absent == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d trials were planned of which there is no record", r.Absent)}
}

// planOf returns the plan that corresponds to these experiments, and the name of each cell.
func planOf(all []*experiment, files []string, res *Result) (*plan.Plan, map[cellKey]string, error) {
	planned, names, sets := map[cellKey]int{}, map[cellKey][]string{}, 0
	for _, x := range all {
		there := map[string]bool{}
		for _, t := range x.trials {
			there[t.dataset] = true
		}
		want, k := x.config.trials(), x.cell()
		res.Absent += max(0, want-len(there))
		planned[k] += max(want, len(x.trials))
		names[k] = append(names[k], x.config.SetID)
		sets = max(sets, x.config.SeederSets)
	}
	systems := distinct(all, func(k cellKey) string { return k.system })
	baseline := "none"
	if slices.Contains(systems, reference) && len(systems) > 1 { // it comes first, as a baseline does
		baseline = reference
		systems = append([]string{reference},
			slices.DeleteFunc(systems, func(s string) bool { return s == reference })...)
	}
	var catalog plan.Catalog
	for _, s := range systems {
		catalog = append(catalog, plan.SystemSpec{Name: s, Modes: []string{"start"}, Can: []string{"spread"}})
	}
	blocks := slices.Max(slices.Collect(maps.Values(planned)))
	source, err := json.Marshal(map[string]any{ // which is YAML
		"scenario": "disseminate", "title": Format + ", imported", "description": "Imported, not measured by Plimsoll.",
		"systems": systems, "baseline": baseline, "link": map[string]any{"emulator": "none"},
		"data": map[string]any{"size": distinct(all, func(k cellKey) int64 { return k.size })},
		"disseminate": map[string]any{"nodes": distinct(all, func(k cellKey) int { return k.nodes }),
			"seeders": distinct(all, func(k cellKey) int { return k.seeders }), "seeder_sets": sets},
		"where": []string{"disseminate.seeders < disseminate.nodes"}, "repetitions": blocks, "warmup": 0})
	if err != nil {
		return nil, nil, err
	}
	e, err := plan.Parse(Format, source, nil, catalog)
	if err != nil {
		return nil, nil, err
	}
	whole, err := e.Plan()
	if err != nil {
		return nil, nil, err
	}
	from := plan.Imported{Format: Format, Unknown: unknown, Notes: []string{res.Counts.words()}}
	for _, k := range slices.SortedFunc(maps.Keys(names),
		func(a, b cellKey) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		slices.Sort(names[k])
		if ids := slices.Compact(names[k]); len(ids) > 1 {
			from.Notes = append(from.Notes, fmt.Sprintf("%s, %d seeders of %d nodes and %s: the experiments %s are "+
				"one cell, since the log has no place for what else they may differ in",
				k.system, k.seeders, k.nodes, plan.Bytes(k.size), strings.Join(ids, ", ")))
		}
	}
	from.Notes = slices.Concat(from.Notes, res.absent(), res.Left)
	for _, f := range files {
		from.From = append(from.From, filepath.Base(f))
	}
	cellOf := func(c plan.Cell) cellKey {
		return cellKey{c.System, int64(c.Data.Size), c.Disseminate.Nodes, c.Disseminate.Seeders}
	}
	p, err := whole.Import(from, func(c plan.Cell) bool { return planned[cellOf(c)] > 0 }, blocks)
	if err != nil {
		return nil, nil, err
	}
	cells := map[cellKey]string{}
	for _, c := range p.Cells {
		cells[cellOf(c)] = c.ID
	}
	return p, cells, nil
}

// distinct returns the distinct values of cells, sorted.
func distinct[T cmp.Ordered](all []*experiment, of func(cellKey) T) []T {
	var values []T
	for _, x := range all {
		values = append(values, of(x.cell()))
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// writer records trials.
type writer struct {
	run     *record.Run
	cells   map[cellKey]string
	measure func([]record.Op) map[string]float64
	res     *Result
}

// write records all trials, in temporal order.
func (w *writer) write(ctx context.Context, all []*experiment) error {
	blocks := blocksOf(all)
	trials := slices.SortedFunc(maps.Keys(blocks), func(a, b *trial) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(blocks[a], blocks[b]),
			cmp.Compare(a.of.config.System, b.of.config.System))
	})
	w.res.Experiments, w.res.Trials = len(all), len(trials)
	if err := w.run.Event(record.Event{At: trials[0].first, Kind: "phase", What: "run begins",
		Detail: "imported"}); err != nil {
		return err
	}
	for _, t := range trials {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.trial(t, blocks[t]); err != nil {
			return err
		}
	}
	return w.run.Event(record.Event{At: trials[len(trials)-1].lastSeen(), Kind: "phase", What: "run ends",
		Detail: "imported"})
}

// lastSeen returns the time of the trial's last record, without those after the downloads.
func (t *trial) lastSeen() time.Time {
	times := []time.Time{t.first}
	for _, of := range []map[string]*span{t.seeded, t.leechers} {
		for _, s := range of {
			times = append(times, s.start, s.end)
		}
	}
	for name, all := range t.progress {
		if t.leechers[name] != nil && len(all) > 0 {
			times = append(times, time.Unix(0, all[len(all)-1].at))
		}
	}
	for _, e := range t.said {
		if e.Stage == "leeching" || e.Stage == "downloading" {
			times = append(times, e.Timestamp.Time)
		}
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

// trial records one trial.
func (w *writer) trial(t *trial, block int) error {
	x := t.of
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
	rec, err := w.run.Begin(w.cells[x.cell()], block, false, epoch)
	if err != nil {
		return err
	}
	from := fmt.Sprintf("%s of %s (%s)", t.dataset, x.config.SetID, x.stream.name)
	if err := rec.Event(record.Event{At: epoch, Kind: "note", What: "imported", Detail: from}); err != nil {
		return err
	}
	if !timed {
		return rec.End(record.Trial{State: record.Failed, Error: fmt.Sprintf(
			"%s of %s: no request of a leecher was recorded%s", t.dataset, x.config.SetID, t.errorWords())})
	}
	end, ops, marks := w.leechers(t, epoch)
	if err := errors.Join(rec.Ops(ops), rec.Marks(marks)); err != nil {
		return err
	}
	end.Metrics = w.measure(ops)
	byStart := func(a, b record.Op) int { return cmp.Compare(a.Start, b.Start) }
	apart := slices.MaxFunc(ops, byStart).Start - slices.MinFunc(ops, byStart).Start
	end.Metrics["start_spread"] = time.Duration(apart).Seconds()
	end.Seconds = time.Duration(ops[len(ops)-1].LastByte).Seconds()
	return rec.End(end)
}

// leechers evaluates the leechers of a trial, and its validity.
func (w *writer) leechers(t *trial, epoch time.Time) (end record.Trial, ops []record.Op, marks []record.Mark) {
	x := t.of
	note := func(holds bool, format string, args ...any) {
		if holds {
			end.Notes = append(end.Notes, fmt.Sprintf(format, args...))
		}
	}
	wrong := t.errorWords()
	note(wrong != "", "the study's runner%s", wrong)
	lost, lastSeen := 0, t.lastSeen()
	for node, name := range x.nodes() {
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
		w.res.Leechers++
		if f.op.Outcome != record.OK {
			w.res.Unfinished++
		}
		if f.op.Class == classLost {
			lost++
		}
		if f.earlier > 0 {
			end.Invalid = []string{record.ReasonClocks}
		}
		note(f.earlier > 0,
			"the clock of %s is at least %s behind the runner's: its first record came before the request", name,
			words.Duration(f.earlier))
		note(t.leechers[name].start.IsZero(),
			"the request of %s was not recorded: it is timed from the first of the others", name)
		ops, marks = append(ops, f.op), append(marks, f.marks...)
	}
	want := x.config.Nodes.Size - x.config.Seeders
	note(len(ops) != want, "%d leechers have a record, %d were to be there", len(ops), want)
	note(lost > 0, "%d leechers completed by the runner's word and lack their last records: when they did is not known",
		lost)
	slices.SortStableFunc(ops, func(a, b record.Op) int { return cmp.Compare(a.LastByte, b.LastByte) })
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	return end, ops, marks
}

// errorWords returns the runner's messages about the trial's failure.
func (t *trial) errorWords() string {
	words := ""
	for _, e := range t.said {
		switch {
		case e.Error != "" && e.Type == typeStatus:
			return " reports an error: " + e.Error
		case e.Error != "" && words == "":
			words = " reports an error while " + e.Stage + ": " + e.Error
		}
	}
	return words
}
