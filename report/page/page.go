// Package page presents the result of an analysis: the page of a run, its summary on a
// terminal, and summary.json. Its only input is an [analysis.Result].
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

//go:embed templates
var files embed.FS

//go:embed page.css
var style template.CSS

//go:embed bundle.js
var bundle []byte

//go:embed templates/layers.json
var layerText []byte

// mostFindings is the largest number of unfolded findings, and mostRows the largest number of
// rows of an unfolded table.
const mostFindings, mostRows = 7, 16

// HTML writes the page of a run: one self-contained file that makes no network requests. A
// live page is served during the run, and listens to its server.
func HTML(w io.Writer, r *analysis.Result, live bool) error { return write(w, "page", r, live) }

// Main writes the part of a live page that changes during a run.
func Main(w io.Writer, r *analysis.Result) error { return write(w, "main", r, true) }

// JSON writes summary.json.
func JSON(w io.Writer, r *analysis.Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

func write(w io.Writer, name string, r *analysis.Result, live bool) error {
	p, err := newPage(r, live)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return execute(w, "page.html", name, p)
}

// execute executes a template of a file, and writes the output only if it is complete.
func execute(w io.Writer, file, name string, data any) error {
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"slot": func(s analysis.System) legend {
			return legend{Colour: slotColour(s.Slot), Mark: slotShape(s.Slot)}
		},
		"colour":   func(s string) template.CSS { return template.CSS(s) },
		"style":    func() template.CSS { return style },
		"join":     func(between string, all []string) string { return strings.Join(all, between) },
		"gateTone": gateTone,
		"own":      ownTable,
	}).ParseFS(files, "templates/"+file))
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// page is the data of the template.
type page struct {
	*analysis.Result
	Live                    bool
	Hash                    string // of the script, the only one that the page may run
	Script, Data            template.JS
	Facts                   []string
	NumbersWhere            string
	Numbers                 []keyNumber
	First, Other            []analysis.Finding
	Hero                    *figure
	Figures, Folded         []*figure
	Cells, Resources        table
	Links, Invalid, Skipped table
	OwnTables, OwnFolded    []analysis.Table
	GateViews               []gateView
	Reasons                 []analysis.Pair // explained validity reasons
	Plan                    string
	Version                 string
	AnyRatio, AnyInterval   bool // in the table of cells
}

// CellsFolded reports whether there are too many cells for an unfolded table.
func (p *page) CellsFolded() bool { return len(p.Cells.Rows) > mostRows }

func newPage(r *analysis.Result, live bool) (*page, error) {
	script := bytes.TrimSpace(bundle)
	d := newDrawer(r)
	figures, err := d.figures()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(append([]*figure{}, figures...)) // its escapes cannot end the script element
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(script)
	p := &page{Result: r, Live: live, Hash: base64.StdEncoding.EncodeToString(sum[:]),
		Script: template.JS(script), Data: template.JS(data),
		Facts: facts(r), Cells: cellTable(r, "Cells", r.View.Columns, true),
		Resources: cellTable(r, "Resources", r.View.Resources, false),
		Links:     linkTable(r),
		Invalid:   invalidTable(r), Skipped: skippedTable(r), GateViews: gateViews(r.Gates), Plan: planText(r),
		Reasons: reasons(r), Version: r.Environ("plimsoll")}
	p.NumbersWhere, p.Numbers = keyNumbers(r)
	for _, f := range figures {
		switch {
		case f.Hero:
			p.Hero = f
		case f.folded:
			p.Folded = append(p.Folded, f)
		default:
			p.Figures = append(p.Figures, f)
		}
	}
	for _, f := range r.Findings {
		if (f.Tone == analysis.Warn || f.Tone == analysis.Bad) && len(p.First) < mostFindings {
			p.First = append(p.First, f)
		} else {
			p.Other = append(p.Other, f)
		}
	}
	for _, t := range r.Tables {
		if t.Folded || len(p.OwnTables) > 0 || len(t.Rows) > mostRows { // one table stays unfolded
			p.OwnFolded = append(p.OwnFolded, t)
		} else {
			p.OwnTables = append(p.OwnTables, t)
		}
	}
	_, p.AnyRatio = d.metric(analysis.RatioColumn)
	p.AnyInterval = slices.ContainsFunc(slices.Concat(p.Cells.Rows...),
		func(e entry) bool { return strings.HasPrefix(e.Note, "±") })
	return p, nil
}

// facts lists what was executed, in a few words each.
func facts(r *analysis.Result) []string {
	run, ended := r.Run, r.Run.Operations
	for _, c := range r.Cells {
		ended -= c.Success.Censored // not in rates of success and failure either
	}
	all := []string{fmt.Sprintf("%d of %s valid", run.Valid, words.Plural(int64(run.Done), "trial", "trials")),
		words.Plural(ended, r.View.Operation[0], r.View.Operation[1]), words.Span(run.Seconds) + " under load"}
	if !run.Started.IsZero() {
		all = append(all, run.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if run.State != "complete" {
		state := run.State
		if run.Done < run.Planned {
			state += fmt.Sprintf(", %d of %d trials", run.Done, run.Planned)
		}
		all = slices.Insert(all, 0, state)
	}
	return all
}

// keyNumber is a metric of the first screen with its value for each system.
type keyNumber struct {
	Name   string
	Values []systemValue
}

type systemValue struct {
	System   analysis.System
	Value    string
	Interval string
}

// telling returns the cell in which a system differs most from the baseline or, if none
// differs, the best cell of the first system; nil: no cell has a headline.
func telling(r *analysis.Result) (best *analysis.Cell, why string) {
	m, _ := r.Frame.Metric(r.Headline)
	far := 0.0
	for _, c := range r.Cells {
		s, ok := c.Metrics[r.Headline]
		q := c.Ratios[r.Headline]
		switch d := math.Abs(math.Log(float64(q.Value))); {
		case !ok:
		case q.Better != 0 && d > far:
			best, far, why = c, d, ", where they differ most"
		case far > 0, best != nil && c.System != best.System:
		case best == nil, (s.Median < best.Metrics[r.Headline].Median) == (m.Better == record.Lower):
			best = c
		}
	}
	return best, why
}

// keyNumbers returns the view's numbers in one group of cells.
func keyNumbers(r *analysis.Result) (where string, all []keyNumber) {
	best, why := telling(r)
	if best == nil {
		return "", nil
	}
	for _, key := range r.View.Numbers {
		m, _ := r.Frame.Metric(key)
		n := keyNumber{Name: m.Name}
		for _, sys := range r.Systems {
			for _, c := range r.Cells {
				if s, ok := c.Metrics[key]; ok && c.Group == best.Group && c.System == sys.Name {
					v := systemValue{System: sys, Value: show(float64(s.Median), m.Unit)}
					if m.Unit == "ratio" {
						v.Value = words.Percent(float64(s.Median))
					}
					if s.Exact && s.Lo < s.Hi {
						v.Interval = plusMinus(s, m.Unit)
					}
					n.Values = append(n.Values, v)
				}
			}
		}
		if len(n.Values) > 0 {
			all = append(all, n)
		}
	}
	if where = r.Frame.Layout.Where(best); where != "" {
		where += why
	}
	return where, all
}

// Index is an index of runs, for the page.
type Index struct {
	Dir  string
	Rows []IndexRow
	Held bool // some runs have gates
}

// IndexRow is a run.
type IndexRow struct {
	ID, Link, Title, Scenario string // the ID is its path below the directory of runs, with slashes
	Run                       analysis.Run
	Verdict                   analysis.Verdict
	Gates                     string // the gravest state of its gates; empty: it has none, or goes on
	Plimsoll                  string
	Systems                   []string
	Error                     string // why it cannot be read
}

// WriteIndex writes an index as one page that makes no network requests.
func WriteIndex(w io.Writer, d Index) error {
	return execute(w, "index.html", "index.html", d)
}
