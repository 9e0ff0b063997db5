package ssh

import (
	"errors"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/remote"
)

// An edited list does not prove that a run is gone.
func TestFindInEditedList(t *testing.T) {
	p := Place{Dir: "/var/tmp", Hosts: []host{{Name: "box2"}, {Name: "box1"}}}
	for _, first := range []remote.Machine{
		{Name: "box0", Dir: "/var/tmp/plimsoll-rabc"}, {Name: "box1", Dir: "/mnt/plimsoll-rabc"},
	} {
		_, err := p.Find(t.Context(), "rabc", first)
		if err == nil || errors.Is(err, remote.ErrGone) || !strings.Contains(err.Error(), "the run is on "+first.Name) {
			t.Errorf("%s in %s: %v", first.Name, first.Dir, err)
		}
	}
}
