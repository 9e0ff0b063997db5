package tahoe

import (
	"context"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/listfile"
)

// reader is a client attached to for reading: the objects were there.
type reader struct {
	*node
	entries []listfile.Entry
}

// Objects implements system.Provider.
func (r *reader) Objects(context.Context) ([]system.Object, error) {
	var out []system.Object
	for _, e := range r.entries {
		out = append(out, e.Object())
	}
	return out, nil
}
