package page

import (
	"bytes"
	"html/template"
	"io"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// Index is an index of runs, for the page.
type Index struct {
	Dir       string
	Scenarios []string
	Scenario  string // the one that is listed; empty: all
	Served    bool   // by a server, which filters
	Notes     []string
	Rows      []IndexRow
	Held      bool // some of them have gates
	Style     template.CSS
}

// IndexRow is a run.
type IndexRow struct {
	ID, Link, Title, Scenario string
	Run                       analysis.Run
	Verdict                   analysis.Verdict
	Gates, Plimsoll           string
	Systems                   []string
	Error                     string // why it cannot be read
}

// WriteIndex writes an index as one page that asks nothing of any network.
func WriteIndex(w io.Writer, d Index) error {
	style, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	d.Style = template.CSS(style)
	t, err := template.New("").Funcs(template.FuncMap{"list": join, "gateTone": gateTone}).ParseFS(files, "templates/index.html")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "index.html", d); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

func join(all []string) string {
	s := ""
	for i, x := range all {
		if i > 0 {
			s += ", "
		}
		s += x
	}
	return s
}
