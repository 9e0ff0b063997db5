package sia

import (
	"fmt"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
)

// Part gets count bytes at off of an object, as system.Ranger says, from a
// server that refuses what leaves the object: get is asked for the n bytes that
// are there, and not at all for none.
func Part(name string, ref system.Ref, off, count int64, size func() (int64, error), get func(n int64) error) error {
	if off < 0 || count < 0 {
		return fmt.Errorf("%s: range of %d bytes at %d", name, count, off)
	}
	total, err := size()
	if err != nil {
		return err
	}
	there := min(count, max(total-off, 0))
	if there > 0 {
		if err := get(there); err != nil {
			return err
		}
	}
	if there < count {
		return fmt.Errorf("%s: bytes %d-%d of %s: the object has %d bytes: %w", name, off, off+count-1, ref, total, io.ErrUnexpectedEOF)
	}
	return nil
}
