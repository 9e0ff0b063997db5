package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes summary.json; docs/results.md describes its schema.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
