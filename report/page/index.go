package page

import (
	"io"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// Index is an index of runs, for the page.
type Index struct {
	Dir  string
	Rows []IndexRow
	Held bool // some of them have gates
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
	return execute(w, "index.html", "index.html", d)
}
