package systemtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testStat(t *testing.T, s Suite, n system.Store) {
	st, ok := n.(system.Stater)
	if !ok {
		t.Skip("the system tells nothing of an object without its bytes")
	}
	for _, size := range []int64{max(1, s.Truths.MinSize), 40, 1000, 2*mib + 1} {
		name := fmt.Sprintf("stat-%d", size)
		ref := put(t, n, name, Bytes(name, size))
		o, err := st.Stat(Context(t), ref)
		if err != nil {
			t.Errorf("stat of an object of %d bytes: %v", size, err)
			continue
		}
		if o.Size != size || o.Ref != ref {
			t.Errorf("stat of %s of %d bytes: %+v", ref, size, o)
		}
		d, ok := n.(system.Deleter)
		if !ok {
			continue
		}
		if err := d.Delete(Context(t), ref); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Stat(Context(t), ref); !errors.Is(err, system.ErrNotFound) {
			t.Errorf("stat of a deleted object: %v, want ErrNotFound", err)
		}
	}
}
