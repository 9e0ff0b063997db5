package upload

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
)

//go:embed view.yaml
var viewText string

//go:embed collect.yaml
var collectText string

// View returns the view of the results of upload.
func (Scenario) View() *analysis.View { return viewOf(viewText, storedWords) }

// View returns the view of the results of collect, with the tables, rules and figures of
// upload, except for the figure of object times.
func (Collect) View() *analysis.View {
	v, of := viewOf(collectText, watchedWords), Scenario{}.View()
	v.Heads, v.Rules = of.Heads, of.Rules
	v.Figures = slices.DeleteFunc(of.Figures, func(f analysis.Figure) bool { return f.ID == "store-time" })
	return v
}

func viewOf(text, verdictWords string) *analysis.View {
	v := analysis.ParseView(text)
	v.Headline = func(*experiment.Plan) string { return "file_bandwidth" }
	v.Read, v.Tables = read, tables
	v.Verdict = func(r *analysis.Result) *analysis.Verdict { return verdict(r, verdictWords) }
	v.SetConditions(conditions)
	v.Censors = func(t *analysis.Trial, metric string, cut bool) bool {
		return cut || strings.HasPrefix(metric, "durable_p") && t.Metrics["not_durable"] > 0
	}
	return v
}

// conditions holds the conditions of the rules of load tests.
var conditions = map[string]func(*analysis.Result) []analysis.Case{"money-unexplained": each(unexplained),
	"objects-lost": each(objectsThat(lost...)), "not-durable": each(notDurable),
	"storage-full": each(full), "slows-down": each(slowing), "poll-gaps": each(pollGaps)}

// key identifies a row of a trial.
type key struct{ metric, entity string }

// test is a load test of a frame, with its rows and a template of its cases.
type test struct {
	*analysis.Trial
	f    *analysis.Frame
	rows map[key]analysis.Row
	x    analysis.Case
}

func tests(f *analysis.Frame) (all []test) {
	for _, t := range f.Trials {
		rows := map[key]analysis.Row{}
		for _, r := range f.Rows {
			if r.Trial == t {
				rows[key{r.Metric, r.Entity}] = r
			}
		}
		if len(rows) == 0 || t.Warmup {
			continue
		}
		name := f.Layout.Name(t.Info)
		if f.Plan.Blocks > 1 {
			name += ", " + record.BlockName(t.Block)
		}
		all = append(all, test{t, f, rows, analysis.Case{System: t.Info.System, Name: name, Range: analysis.NoRange}})
	}
	return all
}

// of returns a number of the whole test, or 0 if there is none.
func (t *test) of(metric string) float64 { return t.rows[key{metric, ""}].Value }

// spans returns the test's spans of some kinds.
func (t *test) spans(kinds ...string) (all []analysis.Span) {
	for _, s := range t.f.Spans {
		if s.Trial == t.Trial && slices.Contains(kinds, s.Kind) {
			all = append(all, s)
		}
	}
	return all
}

// ended returns what ended the test ("storage_full: why"), or "" while it continues.
func (t *test) ended() (why string) {
	for _, s := range t.spans(endedMark) {
		why = s.Note
	}
	return why
}

// done reports whether the test stored all its objects: no exit condition ended it.
func (t *test) done() bool { return strings.HasPrefix(t.ended(), "all ") }

// each returns a condition that examines each load test separately.
func each(of func(t *test, add func(analysis.Case))) func(*analysis.Result) []analysis.Case {
	return func(r *analysis.Result) (cases []analysis.Case) {
		for _, t := range tests(r.Frame) {
			of(&t, func(x analysis.Case) { cases = append(cases, x) })
		}
		return cases
	}
}

// unexplained finds money that is missing or has no purpose, and totals that fell.
func unexplained(t *test, add func(analysis.Case)) {
	x := t.x
	for _, s := range t.spans(moneyMissing, counterFell) {
		x.Text = fmt.Sprintf("%s between %s and %s: %s", s.Kind, words.Moment(s.From), words.Moment(s.To), s.Note)
		add(x)
	}
	share := t.rows[key{"money", unnamed}].Value / t.of("money_used")
	if share < -mostUnnamed || share > mostUnnamed {
		x.Text = words.Percent(share) + " of the money used has no purpose, by the system's own account"
		add(x)
	}
}

// mostUnnamed is the largest share of the money used that may have no purpose.
const mostUnnamed = 0.25

// fate is something that happened to objects.
type fate struct{ metric, words string }

var (
	lost = []fate{{"missing", "were accepted and found missing later"},
		{"failed", "failed as often as upload.retries allows"},
		{"refused", "were refused as often as upload.retries allows"},
		{"unreadable", "could not be read from the data set"},
		{"verify_failed", "could not be fetched back unchanged"}}
	weak = []fate{{"not_durable", "were accepted, and never seen at their full redundancy"},
		{"below_redundancy", "had their full redundancy and no longer have it"}}
)

// objectsThat finds objects that met one of the fates.
func objectsThat(fates ...fate) func(*test, func(analysis.Case)) {
	return func(t *test, add func(analysis.Case)) {
		x := t.x
		for _, f := range fates {
			if x.N = int64(t.of(f.metric)); x.N > 0 {
				x.Of, x.Text = max(int64(t.of("files")), int64(t.of("objects")), x.N), f.words
				add(x)
			}
		}
	}
}

// notDurable finds objects without full redundancy. Until a test is done, each worker may still
// wait for an object that it stored just now.
func notDurable(t *test, add func(analysis.Case)) {
	all := weak
	if up := t.Info.Plan.Upload; up != nil && !t.done() && int(t.of("not_durable")) <= up.Concurrency {
		all = weak[1:]
	}
	objectsThat(all...)(t, add)
}

// full finds tests that ended because the system reported that its storage is full.
func full(t *test, add func(analysis.Case)) {
	x := t.x
	x.N, x.Value, x.Text = int64(t.of("files")), analysis.Num(t.of("stored_bytes")), t.ended()
	if strings.HasPrefix(x.Text, "storage_full") {
		add(x)
	}
}

const (
	// leastChange is the least relative change from the first to the last quarter for a warning.
	leastChange = 0.1
	// slopeBlocks is the number of blocks whose medians are tested for a slope. Single points
	// would not do, since neighbours are correlated.
	slopeBlocks = 10
	leastPoints = 24
	// slopeAlpha and alike (the correlation of blocks) are chosen such that fewer than 1 % of
	// steady load tests, with four series each, are reported as slowing down.
	slopeAlpha, alike = 0.001, 0.25
)

// worsens holds the series that can get worse: 1 if they do so by rising, −1 by falling.
var worsens = map[string]float64{"api_latency": 1, "accept_time": 1, "durable_time": 1, "throughput": -1}

// slowing finds series that get worse: medians of blocks rise or fall significantly, and the
// last quarter is worse than the first.
func slowing(t *test, add func(analysis.Case)) {
	x := t.x
	for _, s := range t.f.Series {
		if s.Trial != t.Trial || worsens[s.Metric] == 0 {
			continue
		}
		first, last, worse := worsening(s.Points, worsens[s.Metric])
		if m, _ := t.f.Metric(s.Metric); worse {
			x.Text, x.Unit, x.Limit, x.Value = m.Name, m.Unit, analysis.Num(first), analysis.Num(last)
			add(x)
		}
	}
}

// worsening returns the medians of a series' first and last quarter, and whether it gets worse.
func worsening(points []analysis.Point, sign float64) (first, last float64, worse bool) {
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

// pollGaps finds tests in which at least 1 % of the polls are gaps: fewer show in no figure.
func pollGaps(t *test, add func(analysis.Case)) {
	x, missed := t.x, t.of("polls_missed")
	x.N, x.Of = int64(missed+t.of("poll_gaps")), int64(t.of("polls")+missed)
	if x.N > 0 && 100*x.N >= x.Of {
		add(x)
	}
}

// watchedWords is the verdict's template for collect, which watches a system that others use.
const watchedWords = "{{if .Running}}So far, {{end}}{{.Name}}: {{plural .Polls `poll` `polls`}} in {{.Took}}" +
	"{{if .Objects}}, {{plural .Objects `object` `objects`}} ({{.Bytes}}) stored{{end}}."

// storedWords is the verdict's template for upload.
const storedWords = "{{if .Running}}So far, {{end}}{{.Name}}: {{plural .Objects `object` `objects`}} ({{.Bytes}}) " +
	"stored in {{.Took}}{{with .Efficiency}} at an efficiency of {{.}} %{{end}}{{with .Used}}, {{.}} " +
	"used{{end}}{{with .Priced}} ({{.}}){{end}}{{with .Ended}}; ended by {{.}}{{end}}."

// verdict summarizes the result of each load test with a template, and adds its problems.
func verdict(r *analysis.Result, verdictWords string) *analysis.Verdict {
	v := analysis.Verdict{Tone: analysis.Good}
	var parts []string
	for _, t := range tests(r.Frame) {
		said := map[string]any{"Name": t.x.Name, "Objects": int64(t.of("files")),
			"Bytes": words.Show(t.of("stored_bytes"), "B"), "Took": words.Moment(cmp.Or(t.of("storing"), t.of("duration"))),
			"Used": t.money(key{"money_used", ""}).Text, "Priced": t.money(key{"money_used" + priced, ""}).Text,
			"Polls": int64(t.of("polls")), "Running": t.State == record.Running}
		if e, ok := t.rows[key{"storage_efficiency", ""}]; ok {
			said["Efficiency"] = words.Digits(100*e.Value, 3)
		}
		if t.State == record.Running {
			v.Tone = analysis.Warn
		} else if !t.done() {
			said["Ended"] = t.ended()
		}
		parts = append(parts, analysis.Fill(verdictWords, said))
	}
	for _, f := range r.Findings {
		own := slices.ContainsFunc(r.View.Rules, func(own analysis.Rule) bool { return own.ID == f.Rule })
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

// money returns an amount with its currency, or an empty value if it is unknown.
func (t *test) money(k key) analysis.Value {
	row, ok := t.rows[k]
	if !ok {
		return analysis.Text("")
	}
	m, _ := t.f.Metric(k.metric)
	v := analysis.Number(row.Value)
	v.Text = words.Money(row.Value, m.Unit)
	return v
}

// tables returns money by purpose, and sessions with crashes, faults and
// violated invariants.
func tables(f *analysis.Frame) []analysis.Table {
	money, life := f.View.Head("money"), f.View.Head("sessions")
	for _, t := range tests(f) {
		add := func(metric, entity, purpose string) {
			row, ok := t.rows[key{metric, entity}]
			if !ok {
				return
			}
			share := analysis.Text("")
			if spent := t.of("money_spent"); entity != "" && spent > 0 {
				share = analysis.Number(row.Value / spent)
			}
			money.Add(t.x.Name, purpose, t.money(key{metric, entity}), row.Exact, share,
				t.money(key{metric + priced, entity}))
		}
		for _, r := range f.Entities(t.Trial, "money") {
			add(r.Metric, r.Entity, r.Entity)
		}
		for _, m := range scenario.Definitions(definitions, "money")[1:] {
			add(m.Key, "", m.Name)
		}
		for _, s := range f.Spans {
			if s.Trial == t.Trial {
				life.Add(t.x.Name, s.Kind, s.From, s.To, s.Note)
			}
		}
	}
	return []analysis.Table{money, life}
}
