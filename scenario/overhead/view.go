package overhead

import (
	"cmp"
	_ "embed"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

//go:embed view.yaml
var viewText string

// operationsWith holds the operations of metrics that not all operations have.
var operationsWith = map[string][]string{"first_byte_p50": {"get", "range"}, "first_byte_line_share": {"get", "range"},
	"throughput": {"put", "put-durable", "put-dir", "get", "range", "update", "fill"},
	"put_p50":    {"fill"}, "get_p50": {"fill"}, "stat_p50": {"fill"}}

// View returns the view of the results of overhead.
func (Scenario) View() *analysis.View {
	var own view
	v := analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "duration_p50" }
	v.Accumulates = func(c *analysis.Cell) bool { return c.Plan.Overhead.Operation == "fill" }
	v.Censors = func(t *analysis.Trial, metric string, cut bool) bool {
		operations, limited := operationsWith[metric]
		return cut && (!limited || slices.Contains(operations, t.Info.Plan.Overhead.Operation))
	}
	v.Tables, v.Alike, v.Verdict = own.tables, own.alike, verdict
	v.SetConditions(map[string]func(*analysis.Result) []analysis.Case{
		"model": rows("cost", "misfit", "ratio", func(t analysis.Table, i int, x *analysis.Case) bool {
			x.Text = t.Get(i, "note").Text
			return t.Get(i, "holds").Tone == analysis.Warn
		}),
		"memory-grows": rows("memory", "growth", "B", func(t analysis.Table, i int, x *analysis.Case) bool {
			x.Name = x.System + ", " + t.Get(i, "process").Text
			return t.Get(i, "grows").Text == "yes"
		}),
		"objects-slope": rows("objects", "slope", "s", func(t analysis.Table, i int, x *analysis.Case) bool {
			return t.Get(i, "change").Text == "slower"
		}),
	})
	return v
}

// verdictWords is the template for the costs of a system's operations.
const verdictWords = "{{.System}}: {{range $i, $o := .Costs}}{{if $i}}, {{end}}{{.Operation}} takes {{.Rounds}} " +
	"round trips{{with .A}} and {{.}}{{end}}{{end}}."

// verdict summarizes the costs of operations if no systems are compared. It is nil if the trials
// do not determine them.
func verdict(r *analysis.Result) *analysis.Verdict {
	if r.Baseline != "" {
		return nil
	}
	t := r.Table("cost")
	var parts []string
	for _, s := range r.Systems {
		var costs []map[string]string
		for i := range t.Rows {
			rounds, a := t.Get(i, "rounds"), t.Get(i, "a")
			if t.Get(i, "system").Text != s.Name || t.Get(i, "holds").Text != "yes" || rounds.Text != "" ||
				!rounds.Number.Known() {
				continue
			}
			cost := map[string]string{"Operation": t.Get(i, "operation").Text, "Rounds": valueWords(rounds, "")}
			if a.Text == "" && a.Number.Known() {
				cost["A"] = valueWords(a, "s")
			}
			costs = append(costs, cost)
		}
		if costs != nil {
			parts = append(parts, analysis.Fill(verdictWords, map[string]any{"System": s.Name, "Costs": costs}))
		}
	}
	if parts == nil {
		return nil
	}
	return &analysis.Verdict{Text: strings.Join(parts, " "), Tone: analysis.Good}
}

func valueWords(v analysis.Value, unit string) string {
	return words.Range(float64(v.Number), float64(v.Lo), float64(v.Hi), unit)
}

// misfit is the median residual of a cell from which a rejected model is no fair description.
const misfit = 0.1

// rows returns a condition with a case for each row of a table for which holds is true. The
// case has the value of a column, in its unit.
func rows(id, column, unit string, holds func(t analysis.Table, row int,
	x *analysis.Case) bool) func(*analysis.Result) []analysis.Case {
	return func(r *analysis.Result) []analysis.Case {
		var all []analysis.Case
		t := r.Table(id)
		for i := range t.Rows {
			system, v := t.Get(i, "system").Text, t.Get(i, column)
			x := analysis.Case{System: system, Name: system + ", " + t.Get(i, "operation").Text,
				Range: analysis.Range{Value: v.Number, Lo: v.Lo, Hi: v.Hi}, Unit: unit}
			if holds(t, i, &x) {
				all = append(all, x)
			}
		}
		return all
	}
}

// task is one operation of one system with a kind of connections.
type task struct{ system, operation, connections string }

func taskOf(c *analysis.Cell) task {
	return task{c.System, c.Plan.Overhead.Operation, c.Plan.Overhead.Connections}
}

// size returns the size of a cell's objects in bytes.
func size(c *analysis.Cell) float64 { return float64(c.Plan.Data.Size) }

// sequential reports whether a cell times single operations of one kind.
func sequential(c *analysis.Cell) bool {
	o := c.Plan.Overhead
	return o.Concurrency <= 1 && o.Operation != "fill"
}

// view caches the reading of the last frame, which several of its functions need.
type view struct{ last *reading }

// reading is a frame with its links by trial, and the sizes that never cross them.
type reading struct {
	*analysis.Frame
	checks  map[int64]record.LinkCheck
	inlines map[task]inline
}

func (v *view) read(f *analysis.Frame) *reading {
	if v.last != nil && v.last.Frame == f {
		return v.last
	}
	r := &reading{f, map[int64]record.LinkCheck{}, map[task]inline{}}
	for _, l := range f.Checks {
		r.checks[l.Trial] = l
	}
	rtts := map[*analysis.Cell][]float64{}
	for _, t := range f.Trials {
		if l, ok := r.checks[t.ID]; ok && t.Valid() {
			rtts[t.Info] = append(rtts[t.Info], l.RTT)
		}
	}
	for _, k := range r.tasks() {
		r.inlines[k] = r.inline(k, rtts)
	}
	v.last = r
	return r
}

// tasks returns the tasks to fit, ordered by operation, connections and system.
func (r *reading) tasks() []task {
	var all []task
	operation := map[string]int{}
	for i, c := range r.Cells {
		k := taskOf(c)
		if !sequential(c) || slices.Contains(all, k) {
			continue
		}
		if all = append(all, k); operation[k.operation] == 0 {
			operation[k.operation] = i + 1
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		return cmp.Or(operation[a.operation]-operation[b.operation], -cmp.Compare(a.connections, b.connections),
			r.place(a.system)-r.place(b.system))
	})
	return all
}

// place returns the index of a system in the run.
func (r *reading) place(system string) int {
	return slices.IndexFunc(r.Systems, func(s analysis.System) bool { return s.Name == system })
}

// inline holds the size up to which an operation's bytes never cross the link; NaN: all cross.
type inline struct {
	stays float64
	whole bool // no size of the plan crosses: the operation is local
}

const (
	noRound    = 0.5   // an operation that took a smaller share of the round trip waited for no answer
	leastRTT   = 0.004 // seconds: the shortest round trip, or difference of two, that shows in a time
	idleBytes  = 128   // on the link: noise of idle connections
	quietShare = 0.5   // the object did not cross if the link carried at most this share of its bytes
	// absentShare is the share of an object of tellingSize or more below which the traffic is
	// communication of daemons: the object did not cross, no matter how long the operation took.
	absentShare, tellingSize = 0.1, 10_000
)

// sized is what the cells with objects of one size show.
type sized struct {
	rtt     float64 // the longest at which an operation was timed; 0: none was, or it was too short to show a wait
	stays   bool    // at that round trip, nothing waited for an answer or crossed
	counted bool    // the bytes on the link tell whether the object crossed
	carried float64 // the most of them
}

// inline finds the sizes whose bytes never cross the link. Either the operation at the longest
// round trip, where a wait shows best, took too little time to wait for an answer while the link
// carried almost nothing, or the link carried too little of a large object.
func (r *reading) inline(k task, rtts map[*analysis.Cell][]float64) (in inline) {
	sizes, planned := map[float64]sized{}, 0.0
	for _, c := range r.Cells {
		if !sequential(c) || taskOf(c) != k {
			continue
		}
		n := size(c)
		planned = max(planned, n)
		took, ok := c.Metrics["duration_p50"]
		if !ok {
			continue
		}
		of := sizes[n]
		wire, measured := c.Metrics["wire_bytes"]
		measured = measured && k.operation != "stat" && k.operation != "delete"
		if measured && n >= tellingSize {
			of.counted, of.carried = true, max(of.carried, float64(wire.Median))
		}
		if rtt := stats.Median(rtts[c]); rtt >= max(leastRTT, of.rtt) {
			crossed := measured && float64(wire.Median) > max(idleBytes, quietShare*n)
			of.rtt, of.stays = rtt, float64(took.Median) < noRound*rtt && !crossed
		}
		sizes[n] = of
	}
	in.stays = math.NaN()
	crossed := false // up to this size
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		of := sizes[n]
		absent := of.counted && of.carried < absentShare*n // then smaller sizes did not cross either
		crossed = !absent && (crossed || of.rtt > 0 && !of.stays)
		if absent || of.rtt > 0 && !crossed {
			in.stays = n
		}
	}
	in.whole = in.stays >= planned
	return in
}

// local reports whether the bytes of a cell's objects never cross the link.
func (r *reading) local(c *analysis.Cell) bool {
	k := taskOf(c)
	if k.operation == "fill" {
		k.operation = "put" // the operation that it times first
	}
	return size(c) <= r.inlines[k].stays
}

// alike reports whether two cells are comparable in a metric: times of operations that cross the
// link are not comparable with times of local ones.
func (v *view) alike(f *analysis.Frame, metric string, a, b *analysis.Cell) bool {
	r := v.read(f)
	return metric == "system_rss_peak" || r.local(a) == r.local(b)
}
