package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
)

//go:embed page/*.html page/page.css page/bundle.js
var pageFiles embed.FS

// pageData is what the page's template sees.
type pageData struct {
	Report *Report
	Live   bool
	pageAssets
	Facts                []Pair
	Cells, Validity      Table
	LinkTable, Resources Table
	Sections             []Section
	Gates                gatesData
	ValidityWords        string
	PlanText, PlanLeft   string
	Data                 template.JS
}

type labelledTable struct {
	Label, Class string
	Table        Table
}

// figureView is a figure at its place: that of the first screen has a heading of
// the second level, as no other stands above it.
type figureView struct {
	Figure
	Leads bool
}

// WriteHTML writes the page: one file, complete, which asks nothing of any network.
func (r *Report) WriteHTML(w io.Writer) error { return r.writePage(w, false) }

func (r *Report) writePage(w io.Writer, live bool) error {
	t, err := r.pageTemplate()
	if err != nil {
		return err
	}
	d, err := r.pageData(live)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "page.html", d)
}

// writeMain writes what changes while a run goes: the page's main element.
func (r *Report) writeMain(w io.Writer) error {
	t, err := r.pageTemplate()
	if err != nil {
		return err
	}
	d, err := r.pageData(true)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "main", d)
}

func (r *Report) pageTemplate() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"labelled": func(label string, t Table) labelledTable {
			class := ""
			if n := len(t.Head); n > 0 && slices.Contains([]string{"why", "holds", "grows"}, t.Head[n-1].Name) {
				class = "wide"
			}
			return labelledTable{label, class, t}
		},
		"at": func(level int, f any) figureView {
			if p, ok := f.(*Figure); ok {
				return figureView{*p, level == 2}
			}
			return figureView{f.(Figure), level == 2}
		},
		"slot": func(system string) (l Legend) {
			for _, s := range r.Systems {
				if s.Name == system {
					l = Legend{Colour: systemColour(s.Slot), Mark: systemShape(s.Slot)}
				}
			}
			return l
		},
		"colour": func(s string) template.CSS { return template.CSS(s) },
		"mark":   func(s string) template.HTML { return template.HTML(legendMarks[s]) },
	}).ParseFS(pageFiles, "page/*.html")
}

// legendMarks draws a legend entry's mark in a box of 20 × 12.
var legendMarks = map[string]string{
	"circle":         `<circle cx="10" cy="6" r="4.5" stroke="none"/>`,
	"square":         `<rect x="6" y="2" width="8" height="8" stroke="none"/>`,
	"triangle-up":    `<path d="M10 1l5 9.5H5z" stroke="none"/>`,
	"triangle-down":  `<path d="M10 11L5 1.5h10z" stroke="none"/>`,
	"triangle-right": `<path d="M15 6L5.5 11V1z" stroke="none"/>`,
	"diamond":        `<path d="M10 .5L15 6l-5 5.5L5 6z" stroke="none"/>`,
	"cross":          `<path d="M8.3 1h3.4v3.3H15v3.4h-3.3V11H8.3V7.7H5V4.3h3.3z" stroke="none"/>`,
	"stroke":         `<path d="M4 6h12" stroke-width="3"/>`,
	"bar":            `<rect x="3" y="1.5" width="14" height="9" rx="1" stroke="none"/>`,
	"line":           `<path d="M0 6h20" stroke-width="2"/>`,
	"dash":           `<path d="M0 6h20" stroke-width="2" stroke-dasharray="5 3"/>`,
	"never":          `<path d="M6 2l8 8M14 2L6 10" stroke-width="2"/>`,
	"hollow":         `<circle cx="10" cy="6" r="4" fill="none" stroke-width="1.6"/>`,
}

func (r *Report) pageData(live bool) (pageData, error) {
	own, err := ownAssets(live)
	if err != nil {
		return pageData{}, err
	}
	d := pageData{Report: r, Live: live, pageAssets: own}
	figures := []Figure{}
	if r.Hero != nil {
		figures = append(figures, *r.Hero)
	}
	figures = append(figures, r.Figures...)
	data, err := figuresData(figures)
	if err != nil {
		return d, err
	}
	d.Data = template.JS(data)
	d.Facts, d.Gates = r.facts(), gatesOf(r.Gates)
	d.Cells, d.Validity, d.LinkTable, d.Resources = r.cellTable(), r.validityTable(), r.linkTable(), r.resourceTable()
	if r.lens.sections != nil {
		d.Sections = r.lens.sections(r)
	}
	d.ValidityWords = r.validityWords()
	d.PlanText, d.PlanLeft = planText(r.Plan)
	return d, nil
}

// pageAssets are what every page brings with itself.
type pageAssets struct {
	Policy string
	Style  template.CSS
	Script template.JS
}

// ownAssets are the style and the script of a page, and the policy that lets
// nothing else in.
func ownAssets(live bool) (pageAssets, error) {
	script, err := pageFiles.ReadFile("page/bundle.js")
	if err != nil {
		return pageAssets{}, err
	}
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return pageAssets{}, err
	}
	script = bytes.TrimSpace(script)
	return pageAssets{policy(script, live), template.CSS(style), template.JS(script)}, nil
}

// policy forbids the page every request; only its own script may run. The live
// page may listen to where it came from.
func policy(script []byte, live bool) string {
	sum := sha256.Sum256(script)
	connect := "'none'"
	if live {
		connect = "'self'"
	}
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; style-src 'unsafe-inline'; img-src data: blob:; connect-src " + connect + "; base-uri 'none'; form-action 'none'"
}

// Env is a value of the environment, or nothing.
func (r *Report) Env(key string) string { return r.EnvironmentOf(key) }

func (r *Report) facts() []Pair {
	run := r.Run
	trials := fmt.Sprintf("%d of %d valid", run.Valid, run.Done)
	if run.Done < run.Planned {
		trials += fmt.Sprintf(", %d planned", run.Planned)
	}
	operations := "Operations"
	if r.swarms != nil || r.syncs != nil {
		operations = capital(r.lens.operation[1])
	}
	valid, all := "", ""
	if run.Valid < run.Done {
		valid, all = " in valid trials", " in all trials"
	}
	facts := []Pair{{"Trials", trials}, {operations, count(run.Operations) + valid}}
	if r.link != "" {
		link := r.link
		if r.finding("link-not-emulated") {
			link = "not emulated (asked for: " + link + ")"
		}
		facts = append(facts, Pair{"Link", link})
	}
	facts = append(facts, Pair{"Time under load", span(run.Seconds) + all})
	if !run.Started.IsZero() {
		facts = append(facts, Pair{"Started", run.Started.UTC().Format("2006-01-02 15:04 UTC")})
	}
	facts = append(facts, Pair{"Seed", strconv.FormatUint(run.Seed, 10)})
	if run.State != "complete" {
		facts = slices.Insert(facts, 0, Pair{"State", run.State})
	}
	return facts
}
