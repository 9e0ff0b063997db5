package engine

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// maxBytes ends the run when it has moved enough bytes.
type maxBytes struct{ limit int64 }

func (maxBytes) Name() string { return "max_bytes" }

func (c maxBytes) Met(p progressSoFar) (string, bool) {
	if p.Bytes < c.limit {
		return "", false
	}
	return fmt.Sprintf("%s were moved, the limit is %s", experiment.RoughBytes(float64(p.Bytes)), experiment.RoughBytes(float64(c.limit))), true
}
