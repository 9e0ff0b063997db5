package studylog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// runner is the node that makes requests, in the study's logs.
const runner = "runner"

// shipper writes the lines of a log; experiment and node tell of what and where.
type shipper func(experiment, node string, at time.Time, message string) error

// WriteLines writes a run as lines of a log with records in them.
func WriteLines(run *record.Reader, w io.Writer) error {
	out := bufio.NewWriter(w)
	err := export(run, func(_, _ string, _ time.Time, message string) error {
		_, err := out.WriteString(message + "\n")
		return err
	})
	return cmp.Or(err, out.Flush())
}

// WriteVector writes a run as Vector stores logs: the study's program splits it
// into one directory for each experiment, which its notebook reads.
func WriteVector(run *record.Reader, w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	group := "plimsoll-" + run.ID()
	err := export(run, func(experiment, node string, at time.Time, message string) error {
		return enc.Encode(map[string]any{
			"kubernetes": map[string]any{
				"container_name": node, "pod_name": experiment + "-" + node,
				"pod_labels": map[string]string{labelExperiment: experiment, labelApp: appName, labelGroup: group},
			},
			"message": message, "timestamp": at.UTC().Format(time.RFC3339Nano),
		})
	})
	return cmp.Or(err, out.Flush())
}

// export writes all experiments, each a cell of the plan.
func export(run *record.Reader, ship shipper) error {
	var p plan.Plan
	if err := json.Unmarshal(run.Plan(), &p); err != nil {
		return fmt.Errorf("study log of %s: plan.json: %w", run.Dir(), err)
	}
	if p.Experiment.Scenario != "disseminate" {
		return fmt.Errorf("study log of %s: its scenario is %s; the study's logs are of disseminate only", run.Dir(), p.Experiment.Scenario)
	}
	kinds := map[string]string{}
	for _, s := range p.Experiment.Systems {
		kinds[s.Name] = s.Use
	}
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	events, err := run.Events()
	if err != nil {
		return err
	}
	for _, c := range p.Cells {
		x := exported{run: run, id: c.System + "-" + c.ID, system: kinds[c.System], cell: c, ship: ship}
		for _, t := range trials {
			switch {
			case t.Cell != c.ID || t.Warmup:
				continue
			case t.Valid():
				if err := x.add(t, events); err != nil {
					return err
				}
			default:
				x.left++
			}
		}
		if err := x.write(); err != nil {
			return err
		}
	}
	return nil
}

// exported is a cell on its way into a log.
type exported struct {
	run    *record.Reader
	id     string
	system string
	cell   plan.Cell
	ship   shipper
	trials []*exportedTrial
	names  []string // of the nodes
	unit   int64
	left   int // trials that are not valid: the format cannot say so
}

type exportedTrial struct {
	record.Trial
	seeders  []int
	leechers []record.Op // by node
	marks    map[int][]record.Mark
	events   []record.Event
	dataset  string
}

func (x *exported) add(t record.Trial, events []record.Event) error {
	e := &exportedTrial{Trial: t, marks: map[int][]record.Mark{}}
	var names []string
	part := 0
	for _, d := range t.Details {
		if d.Kind != record.DetailSeeder {
			continue
		}
		if d.Value == 1 {
			e.seeders = append(e.seeders, len(names))
		}
		names = append(names, d.Name)
		if d.Value >= 0 {
			part = len(names)
		}
	}
	// A cell has the first nodes of its system; the others took no part.
	names = names[:min(len(names), max(part, x.cell.Disseminate.Nodes))]
	for op, err := range x.run.Ops(t.ID) {
		if err != nil {
			return err
		}
		if op.Kind == record.OpFetch && int(op.Worker) < len(names) {
			e.leechers = append(e.leechers, op)
		}
	}
	if len(e.leechers) == 0 || len(e.seeders) == 0 {
		x.left++
		return nil
	}
	slices.SortFunc(e.leechers, func(a, b record.Op) int { return cmp.Compare(a.Worker, b.Worker) })
	for m, err := range x.run.Marks(t.ID) {
		if err != nil {
			return err
		}
		e.marks[m.Node] = append(e.marks[m.Node], m)
	}
	for _, event := range events {
		if event.Trial == t.ID {
			e.events = append(e.events, event)
		}
	}
	if len(names) > len(x.names) {
		x.names = names
	}
	x.trials = append(x.trials, e)
	return nil
}

func (x *exported) write() error {
	if x.left > 0 {
		if err := x.ship(x.id, runner, time.Unix(0, 0), fmt.Sprintf("plimsoll: %s: %d trials are left out: they are not valid, have no leechers, or could not be executed", x.id, x.left)); err != nil {
			return err
		}
	}
	if len(x.trials) == 0 {
		return nil
	}
	slices.SortStableFunc(x.trials, func(a, b *exportedTrial) int { return a.Epoch.Compare(b.Epoch) })
	sets, repetitions := x.sets()
	for i, t := range x.trials {
		t.dataset = fmt.Sprintf("dataset-%d-%d", i/repetitions, i%repetitions)
	}
	x.unit = 1
	if x.system == reference {
		x.unit = x.piece()
	}
	b, err := json.Marshal(x.config(sets, repetitions))
	if err != nil {
		return err
	}
	if err := x.ship(x.id, runner, x.trials[0].Epoch, marker+string(b)); err != nil {
		return err
	}
	for i, t := range x.trials {
		if err := x.trial(i, t); err != nil {
			return err
		}
	}
	return nil
}

// sets puts the trials into the order in which the notebook counts requests: seeder
// set after seeder set, in the order of their first trials, with equally many
// repetitions each, in the order of their times. Where the sets have different
// numbers of them, each trial is a set of its own.
func (x *exported) sets() (sets, repetitions int) {
	var groups [][]*exportedTrial
	for _, t := range x.trials {
		i := slices.IndexFunc(groups, func(g []*exportedTrial) bool { return slices.Equal(g[0].seeders, t.seeders) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	for _, g := range groups {
		if len(g) != len(groups[0]) {
			return len(x.trials), 1
		}
	}
	x.trials = slices.Concat(groups...)
	return len(groups), len(groups[0])
}

// maxPieces of a file: each is a line for each leecher.
const maxPieces = 1 << 16

// piece is the length of the pieces in which progress is written for Deluge: the
// largest of which all that was observed is a multiple or, where that makes too
// many, the smallest that the file is a multiple of.
func (x *exported) piece() int64 {
	size := int64(x.cell.Data.Size)
	unit := size
	for _, t := range x.trials {
		for _, marks := range t.marks {
			for _, m := range marks {
				unit = gcd(unit, m.Verified)
			}
		}
	}
	if size/unit <= maxPieces {
		return unit
	}
	for n := int64(maxPieces); ; n-- {
		if size%n == 0 {
			return size / n
		}
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

var numbered = regexp.MustCompile(`^(.*?)([0-9]+)$`)

// template is the text that, with the node's index in it, gives the names of the
// nodes, as the study's configurations have it.
func template(names []string) (text string, first int) {
	m := numbered.FindStringSubmatch(names[0])
	if m == nil {
		return "node-{node_index}", 0
	}
	first, _ = strconv.Atoi(m[2])
	prefix := strings.NewReplacer("{", "{{", "}", "}}").Replace(m[1])
	for text, format := range map[string]string{prefix + "{node_index}": "%d", fmt.Sprintf("%s{node_index:0>%d}", prefix, len(m[2])): fmt.Sprintf("%%0%dd", len(m[2]))} {
		fits := true
		for i, name := range names {
			fits = fits && name == m[1]+fmt.Sprintf(format, first+i)
		}
		if fits {
			return text, first
		}
	}
	return "node-{node_index}", 0
}

// config is the record of the configuration. The study's program refuses one
// without addresses and ports; those here stand for nothing.
func (x *exported) config(sets, repetitions int) map[string]any {
	name, first := template(x.names)
	node := func(fields map[string]any) map[string]any {
		fields["address"], fields["agent_url"] = "localhost", "http://localhost/"
		if x.system == reference {
			fields["daemon_port"], fields["listen_ports"] = 0, []int{0, 0}
		} else {
			fields["disc_port"], fields["api_port"] = 0, 0
		}
		return fields
	}
	var nodes []map[string]any
	for _, n := range x.names {
		nodes = append(nodes, node(map[string]any{"name": n}))
	}
	c := map[string]any{
		"experiment_set_id": x.id, "seeder_sets": sets, "seeders": x.cell.Disseminate.Seeders, "file_size": int64(x.cell.Data.Size),
		"nodes":            node(map[string]any{"network_size": x.cell.Disseminate.Nodes, "name": name, "first_node_index": first, "nodes": nodes}),
		"logging_cooldown": 0, "repetitions": repetitions, "download_metric_unit_bytes": x.unit,
		"experiment_type": x.system + typeConfig, "entry_type": x.system + typeConfig,
	}
	if x.system == reference {
		c["tracker_announce_url"] = "http://localhost/"
	} else {
		c["remove_data"] = true
	}
	return c
}

// trial writes the records of one trial, in the order of their times.
func (x *exported) trial(i int, t *exportedTrial) error {
	var all []entry
	at := func(ns int64) moment { return moment{t.Epoch.Add(time.Duration(ns)).Truncate(time.Microsecond)} }
	add := func(e entry) { all = append(all, e) }
	span := func(e entry, from, to moment) {
		e.Boundary, e.Timestamp = "start", from
		failed := e.Error
		e.Error = nil
		add(e)
		e.Boundary, e.Timestamp, e.Error = "end", to, failed
		add(e)
	}
	failed := t.failed()
	first, started, ended := int64(math.MaxInt64), int64(math.MinInt64), int64(math.MinInt64)
	for _, op := range t.leechers {
		first, started, ended = min(first, op.Start), max(started, op.Start), max(ended, op.LastByte)
	}
	begin := at(min(first, 0))
	stages := map[string]bool{}
	seeded := map[string]bool{}
	for _, e := range t.events {
		from, to := moment{e.At.Truncate(time.Microsecond)}, moment{e.At.Add(e.Took).Truncate(time.Microsecond)}
		switch {
		case e.Kind == "phase" && slices.Contains(stageNames, stageOf(e.What)):
			s := entry{Type: typeStage, Stage: stageOf(e.What), Timestamp: from}
			if e.Detail != "" {
				s.Error = &e.Detail
			}
			switch {
			case strings.HasSuffix(e.What, eventBegins):
				s.Boundary = "start"
				add(s)
			case strings.HasSuffix(e.What, eventEnds):
				s.Boundary = "end"
				add(s)
			default:
				span(s, from, to)
			}
			stages[s.Stage] = true
		case e.Kind == "node" && e.What == eventSeeded:
			span(x.request(requestSeed, e.Detail, t.dataset), from, to)
			seeded[e.Detail] = true
		default:
			continue
		}
		if from.Before(begin.Time) {
			begin = from
		}
	}
	for _, n := range t.seeders {
		if name := x.names[n]; !seeded[name] {
			span(x.request(requestSeed, name, t.dataset), at(min(first, 0)), at(min(first, 0)))
		}
	}
	if !stages["leeching"] {
		span(entry{Type: typeStage, Stage: "leeching"}, at(first), at(started))
	}
	for _, op := range t.leechers {
		name := x.names[op.Worker]
		e := x.request(requestLeech, name, t.dataset)
		e.Boundary, e.Timestamp = "start", at(op.Start)
		add(e)
		all = append(all, x.downloads(t, &op, at)...)
	}
	if !stages["downloading"] {
		span(entry{Type: typeStage, Stage: "downloading", Error: failed}, at(started), at(ended))
	}
	duration := number(at(ended).Sub(begin.Time).Seconds())
	add(entry{Type: typeStatus, Name: x.id, Repetition: &i, Duration: &duration, Timestamp: at(ended), Error: failed})
	slices.SortStableFunc(all, func(a, b entry) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	for _, e := range all {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		node := runner
		if e.Type == typeDownload {
			node = e.Node
		}
		if err := x.ship(x.id, node, e.Timestamp.Time, marker+string(b)); err != nil {
			return err
		}
	}
	return nil
}

// stageNames are the stages of the study's runner.
var stageNames = []string{"seeding", "leeching", "downloading", "log_cooldown", "deleting"}

func stageOf(what string) string {
	return strings.TrimSuffix(strings.TrimSuffix(what, eventBegins), eventEnds)
}

func (x *exported) request(name, node, dataset string) entry {
	return entry{Type: typeRequest, Name: name, Node: runner, Destination: node, RequestID: fmt.Sprintf("Meta(name='%s')", dataset)}
}

// downloads are the records of a leecher's progress. One that claimed to be
// complete and had wrong bytes, or did not complete, never reaches the whole.
func (x *exported) downloads(t *exportedTrial, op *record.Op, at func(int64) moment) []entry {
	var all []entry
	node, size := x.names[op.Worker], int64(x.cell.Data.Size)
	had := int64(0)
	tell := func(when, bytes int64) {
		if x.unit == 1 {
			v := number(bytes)
			all = append(all, entry{Type: typeDownload, Name: "download", Node: node, Dataset: t.dataset, Value: &v, Timestamp: at(when)})
			had = bytes
			return
		}
		for ; had+x.unit <= bytes; had += x.unit {
			piece := number(had / x.unit)
			all = append(all, entry{Type: typeDownload, Name: "deluge_piece_downloaded", Node: node, Dataset: t.dataset, Value: &piece, Timestamp: at(when)})
		}
	}
	for _, m := range t.marks[int(op.Worker)] {
		if m.Verified > had && m.Verified < size {
			tell(int64(m.End), m.Verified)
		}
	}
	if op.Outcome == record.OK {
		tell(op.LastByte, size)
	}
	return all
}

// failed says why the trial failed: as its runner said or, of ours, which
// leechers did not complete. Nil when none failed; one that was only not watched
// to its end did not.
func (t *exportedTrial) failed() *string {
	for _, e := range t.events {
		if stage := stageOf(e.What); e.Kind == "phase" && e.Detail != "" && stage != "deleting" && slices.Contains(stageNames, stage) {
			return &e.Detail
		}
	}
	n := map[record.Outcome]int{}
	for _, op := range t.leechers {
		if op.Outcome != record.OK && op.Outcome != record.InFlight {
			n[op.Outcome]++
		}
	}
	if len(n) == 0 {
		return nil
	}
	var words []string
	for _, o := range slices.Sorted(maps.Keys(n)) {
		word := o.String()
		if o == record.Deadline || o == record.Stalled {
			word += ": " + inTime
		}
		words = append(words, fmt.Sprintf("%d downloads %s", n[o], word))
	}
	text := strings.Join(words, "; ")
	return &text
}
