package engine

import "fmt"

// maxBytes ends the run when it has moved enough bytes.
type maxBytes struct{ limit int64 }

func (maxBytes) Name() string { return "max_bytes" }

func (c maxBytes) Met(p progressSoFar) (string, bool) {
	if p.Bytes < c.limit {
		return "", false
	}
	return fmt.Sprintf("%d bytes were moved, the limit is %d", p.Bytes, c.limit), true
}
