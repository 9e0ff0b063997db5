package page

import (
	"bytes"
	"html/template"
	"io"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// Index is an index of runs, for the page.
type Index struct {
	Dir  string
	Rows []IndexRow
	Held bool // some of them have gates
	More int  // not 0: only the first so many of the runs there
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

// WriteIndex writes an index as one page that asks nothing of any network.
func WriteIndex(w io.Writer, d Index) error {
	return writePlain(w, "index.html", d)
}

// writePlain writes a page without figures, whole or not at all.
func writePlain(w io.Writer, name string, data any) error {
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	t, err := template.New("").Funcs(template.FuncMap{"gateTone": gateTone,
		"list":  func(all []string) string { return strings.Join(all, ", ") },
		"style": func() template.CSS { return template.CSS(style) }}).ParseFS(files, "templates/"+name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}
