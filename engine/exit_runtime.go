package engine

import (
	"fmt"
	"time"
)

// maxRuntime ends the run when it has lasted long enough.
type maxRuntime struct{ limit time.Duration }

func (maxRuntime) Name() string { return "max_runtime" }

func (c maxRuntime) Met(p progressSoFar) (string, bool) {
	if p.Seconds < c.limit.Seconds() {
		return "", false
	}
	return fmt.Sprintf("the run has lasted %.0f s, the limit is %s", p.Seconds, c.limit), true
}
