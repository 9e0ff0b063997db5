package upload

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// rules are those of load tests.
func rules() []analysis.Rule {
	return []analysis.Rule{
		{ID: "money-unexplained", Rank: analysis.Unreliable, Tone: analysis.Bad, Holds: unexplained,
			Title:  `Money is missing, or a total fell: {{.Systems}}`,
			Each:   `{{.Name}}: {{.Text}}`,
			Advice: `Compare the wallet's transactions of that time with the contracts. See the log for a restart.`},
		{ID: "objects-lost", Rank: analysis.Failure, Tone: analysis.Bad, Holds: objectsThat(lost...),
			Title:  `{{plural .Total "object was" "objects were"}} lost or not stored: {{.Systems}}`,
			Each:   `{{.Name}}: {{count .N}} of {{count .Of}} {{.Text}}`,
			Advice: `Query the table jobs of run.db for these objects and their errors.`},
		{ID: "not-durable", Rank: analysis.Failure, Tone: analysis.Warn, Holds: objectsThat(notDurable...),
			Title:  `{{plural .Total "object" "objects"}} without full redundancy: {{.Systems}}`,
			Each:   `{{.Name}}: {{count .N}} of {{count .Of}} {{.Text}}`,
			Advice: `These objects depend on fewer servers than asked for. Look at the health of hosts and contracts.`},
		{ID: "storage-full", Rank: analysis.Failure, Tone: analysis.Warn, Holds: full,
			Title:  `The storage is full: {{.Systems}}`,
			Each:   `{{.Name}}: after {{plural .N "object" "objects"}} ({{show .Value "B"}}); {{.Text}}`,
			Advice: `The system reports that it can take no more.`},
		{ID: "slows-down", Rank: analysis.Slow, Tone: analysis.Warn, Holds: slowing,
			Title: `Slows down over time: {{.Systems}}`,
			Each: "{{.Name}}: {{.Text}}, {{show .Limit .Unit}} in the first quarter " +
				"and {{show .Value .Unit}} in the last",
			Advice: `See in the figures over time when it began, and what else changed then.`},
		{ID: "poll-gaps", Rank: analysis.Notable, Tone: analysis.Neutral, Holds: pollGaps,
			Title:  `Not every poll was answered: {{.Systems}}`,
			Each:   `{{.Name}}: {{count .N}} of {{count .Of}} polls missed, or with a call that failed`,
			Advice: `Figures and sums leave these gaps out.`},
	}
}

// key names a row of a trial.
type key struct{ metric, entity string }

// tests calls f for each load test of a frame with its rows.
func tests(f *analysis.Frame, do func(t *analysis.Trial, rows map[key]analysis.Row, x analysis.Case)) {
	all := map[*analysis.Trial]map[key]analysis.Row{}
	for _, r := range f.Rows {
		if all[r.Trial] == nil {
			all[r.Trial] = map[key]analysis.Row{}
		}
		all[r.Trial][key{r.Metric, r.Entity}] = r
	}
	for _, t := range f.Trials {
		if all[t] == nil || t.Warmup {
			continue
		}
		name := f.Layout.Name(t.Info)
		if f.Plan.Blocks > 1 {
			name += ", " + record.BlockName(t.Block)
		}
		do(t, all[t], analysis.Case{System: t.Info.System, Where: f.Layout.Where(t.Info), Name: name,
			Value: analysis.Unknown, Lo: analysis.Unknown, Hi: analysis.Unknown})
	}
}

// spans are those of a trial of some kinds.
func spans(f *analysis.Frame, t *analysis.Trial, kinds ...string) (all []analysis.Span) {
	for _, s := range f.Spans {
		if s.Trial == t && slices.Contains(kinds, s.Kind) {
			all = append(all, s)
		}
	}
	return all
}

// unexplained is money that is in no account, and totals that fell.
func unexplained(r *analysis.Result) (cases []analysis.Case) {
	tests(r.Frame, func(t *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
		for _, s := range spans(r.Frame, t, moneyMissing, counterFell) {
			x.Text = fmt.Sprintf("%s between %s and %s: %s", s.Kind, words.Moment(s.From), words.Moment(s.To), s.Note)
			cases = append(cases, x)
		}
		rest, used := rows[key{"money", unnamed}], rows[key{"money_used", ""}]
		if share := rest.Value / used.Value; share < -mostUnnamed || share > mostUnnamed {
			x.Text = words.Percent(share) + " of the money used has no purpose, by the system's own account"
			cases = append(cases, x)
		}
	})
	return cases
}

// mostUnnamed is the most of the money used that a system may enter under no purpose.
const mostUnnamed = 0.25

var (
	lost       = []key{{"missing", ""}, {"failed", ""}, {"refused", ""}, {"unreadable", ""}, {"verify_failed", ""}}
	notDurable = []key{{"objects_by_state", lateState}, {"below_redundancy", ""}}
	// happened says of objects what became of them.
	happened = map[key]string{lost[0]: "were accepted and found missing later",
		lost[1]: "failed as often as upload.retries allows",
		lost[2]: "were refused as often as upload.retries allows", lost[3]: "could not be read from the data set",
		lost[4]:       "could not be fetched back unchanged",
		notDurable[0]: "were accepted, and not at their full redundancy within upload.settle",
		notDurable[1]: "had their full redundancy and no longer have it"}
)

// objectsThat finds objects that something happened to.
func objectsThat(keys ...key) func(*analysis.Result) []analysis.Case {
	return func(r *analysis.Result) (cases []analysis.Case) {
		tests(r.Frame, func(_ *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
			for _, k := range keys {
				if x.N = int64(rows[k].Value); x.N > 0 {
					x.Of, x.Text = max(int64(rows[key{"files", ""}].Value), int64(rows[key{"objects", ""}].Value), x.N),
						happened[k]
					cases = append(cases, x)
				}
			}
		})
		return cases
	}
}

// full is storage that takes no more by the system's own word.
func full(r *analysis.Result) (cases []analysis.Case) {
	tests(r.Frame, func(t *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
		why := ""
		if n := int64(rows[key{"no_room", ""}].Value); n > 0 {
			why = words.Plural(n, "object was refused for it", "objects were refused for it")
		}
		if s := ended(r.Frame, t); strings.HasPrefix(s, "storage_full") {
			why = s
		}
		if why != "" {
			x.N, x.Value, x.Text = int64(rows[key{"files", ""}].Value),
				analysis.Num(rows[key{"stored_bytes", ""}].Value), why
			cases = append(cases, x)
		}
	})
	return cases
}

// ended is what ended a trial, "storage_full: why"; empty: it goes on.
func ended(f *analysis.Frame, t *analysis.Trial) (why string) {
	for _, s := range spans(f, t, endedMark) {
		why = s.Note
	}
	return why
}

const (
	// leastChange from the first to the last quarter is worth a warning.
	leastChange = 0.1
	// slopeBlocks medians of neighbours are what a slope is of: neighbours are alike.
	slopeBlocks = 10
	leastPoints = 24
	// slopeAlpha, with blocks that are so much alike, is such that of load tests that do
	// not change, with four series each, fewer than 1 % are said to slow down.
	slopeAlpha, alike = 0.001, 0.25
)

// slowing are series that get worse: medians of blocks rise or fall significantly, and the
// last quarter is worse than the first.
func slowing(r *analysis.Result) (cases []analysis.Case) {
	tests(r.Frame, func(t *analysis.Trial, _ map[key]analysis.Row, x analysis.Case) {
		for _, s := range r.Frame.Series {
			sign, ok := map[string]float64{"api_latency": 1, "accept_time": 1, "durable_time": 1,
				"throughput": -1}[s.Metric]
			if s.Trial != t || !ok {
				continue
			}
			first, last, worse := gets(s.Points, sign)
			if m, _ := r.Frame.Metric(s.Metric); worse {
				x.Text, x.Unit, x.Limit, x.Value = m.Name, m.Unit, analysis.Num(first), analysis.Num(last)
				cases = append(cases, x)
			}
		}
	})
	return cases
}

// gets compares the first quarter of a series with its last.
func gets(points []analysis.Point, sign float64) (first, last float64, worse bool) {
	var x, y, at, values []float64
	for _, p := range points {
		if !math.IsNaN(p.Value) {
			x, y = append(x, p.At), append(y, p.Value)
		}
	}
	n := len(y)
	if n < leastPoints {
		return nan, nan, false
	}
	first, last = stats.Median(y[:n/4]), stats.Median(y[n-n/4:])
	for i := range slopeBlocks {
		from, to := i*n/slopeBlocks, (i+1)*n/slopeBlocks
		at, values = append(at, stats.Median(x[from:to])), append(values, sign*stats.Median(y[from:to]))
	}
	return first, last, stats.Rising(at, values, alike) <= slopeAlpha && sign*(last-first) >= leastChange*first
}

// pollGaps are gaps of at least a hundredth of the polls: fewer show in no figure.
func pollGaps(r *analysis.Result) (cases []analysis.Case) {
	tests(r.Frame, func(_ *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
		missed := int64(rows[key{"polls_missed", ""}].Value)
		x.N = missed + int64(rows[key{"poll_gaps", ""}].Value)
		if x.Of = int64(rows[key{"polls", ""}].Value) + missed; x.N > 0 && 100*x.N >= x.Of {
			cases = append(cases, x)
		}
	})
	return cases
}

// verdictWords say what came of a load test.
const verdictWords = "{{if .Running}}So far, {{end}}{{.Name}}: {{plural .Objects `object` `objects`}} ({{.Bytes}}) " +
	"stored in {{.Took}}{{with .Efficiency}} at an efficiency of {{.}} %{{end}}{{with .Used}}, {{.}} " +
	"used{{end}}{{with .Priced}} ({{.}}){{end}}{{with .Ended}}; ended by {{.}}{{end}}."

// verdict says what came of each load test, and what is wrong with it.
func verdict(r *analysis.Result) *analysis.Verdict {
	v := analysis.Verdict{Tone: analysis.Good}
	var parts []string
	tests(r.Frame, func(t *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
		of := func(metric string) analysis.Row { return rows[key{metric, ""}] }
		took := of("duration").Value
		if storing, ok := rows[key{"storing", ""}]; ok {
			took = storing.Value
		}
		money := func(metric string) string {
			m, _ := r.Frame.Metric(metric)
			if row, ok := rows[key{metric, ""}]; ok {
				return words.Money(row.Value, m.Unit)
			}
			return ""
		}
		said := map[string]any{"Name": x.Name, "Objects": int64(of("files").Value),
			"Bytes": words.Show(of("stored_bytes").Value, "B"),
			"Took":  words.Moment(took), "Used": money("money_used"), "Priced": money("money_used" + priced),
			"Running": t.State == record.Running}
		if e, ok := rows[key{"storage_efficiency", ""}]; ok {
			said["Efficiency"] = words.Digits(100*e.Value, 3)
		}
		if t.State == record.Running {
			v.Tone = analysis.Warn
		} else if why := ended(r.Frame, t); !strings.HasPrefix(why, "all done") &&
			!strings.HasPrefix(why, "durable too") {
			said["Ended"] = why
		}
		parts = append(parts, analysis.Fill(verdictWords, said))
	})
	for _, f := range r.Findings {
		own := slices.ContainsFunc(rules(), func(own analysis.Rule) bool { return own.ID == f.Rule })
		if own && (f.Tone == analysis.Bad || f.Tone == analysis.Warn) {
			parts = append(parts, f.Title+".")
			if v.Tone != analysis.Bad {
				v.Tone = f.Tone
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	v.Text = strings.Join(parts, " ")
	return &v
}

// tables are money by purpose, objects by state, and sessions with what did not hold.
func tables(f *analysis.Frame) ([]analysis.Table, error) {
	column := func(key, name, unit string) analysis.TableColumn {
		wide := key == "test" || key == "exact" || key == "note"
		return analysis.TableColumn{Key: key, Name: name, Unit: unit, Narrow: !wide}
	}
	test := column("test", "load test", "")
	money := analysis.Table{ID: "money", Title: "Money by purpose", Folded: true,
		Caption: "By the system's account at the last poll. Unspent money lies in contracts and comes back when " +
			"they end.",
		Head: []analysis.TableColumn{test, column("purpose", "purpose", ""), column("amount", "amount", ""),
			column("exact", "exact", ""), column("share", "share", "ratio"),
			column("priced", "at the stated price", "")}}
	states := analysis.Table{ID: "objects", Title: "Objects by state", Folded: true,
		Caption: "Adopted ones were found stored by a later session. Retried ones needed more than one attempt.",
		Head:    []analysis.TableColumn{test, column("state", "state", ""), column("objects", "objects", "1")}}
	life := analysis.Table{ID: "sessions", Title: "Sessions and events", Folded: true,
		Caption: "A killed session ends with the last that it recorded.",
		Head: []analysis.TableColumn{test, column("what", "what", ""), column("from", "from", "s"),
			column("to", "to", "s"),
			column("note", "note", "")}}
	tests(f, func(t *analysis.Trial, rows map[key]analysis.Row, x analysis.Case) {
		say := func(metric string, row analysis.Row) analysis.Value {
			m, _ := f.Metric(metric)
			return analysis.Value{Text: words.Money(row.Value, m.Unit), Number: analysis.Num(row.Value),
				Lo: analysis.Unknown,
				Hi: analysis.Unknown}
		}
		add := func(k key, purpose string) {
			row, ok := rows[k]
			if !ok {
				return
			}
			share, converted := analysis.Text(""), analysis.Text("")
			if s, ok := rows[key{"money_share", k.entity}]; ok {
				share = analysis.Number(s.Value)
			}
			if p, ok := rows[key{k.metric + priced, k.entity}]; ok {
				converted = say(k.metric+priced, p)
			}
			money.Add(x.Name, purpose, say(k.metric, row), row.Exact, share, converted)
		}
		for _, r := range f.Entities(t, "money") {
			add(key{r.Metric, r.Entity}, r.Entity)
		}
		for _, m := range amounts[1:] {
			add(key{m.Key, ""}, m.Name)
		}
		for _, r := range f.Entities(t, "objects_by_state") {
			states.Add(x.Name, r.Entity, r.Value)
		}
		for _, s := range f.Spans {
			if s.Trial == t {
				life.Add(x.Name, s.Kind, s.From, s.To, s.Note)
			}
		}
	})
	return slices.DeleteFunc([]analysis.Table{money, states, life},
		func(t analysis.Table) bool { return len(t.Rows) == 0 }), nil
}
