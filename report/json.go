package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes summary.json; docs/results.md describes its schema.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r, "  ") }

// WriteJSON writes the comparison; docs/compare.md describes its schema.
func (c *RunComparison) WriteJSON(w io.Writer) error { return writeJSON(w, c, "  ") }

// WriteJSONLine writes it on one line.
func (c *RunComparison) WriteJSONLine(w io.Writer) error { return writeJSON(w, c, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
