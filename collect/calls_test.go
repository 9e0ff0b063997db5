package collect

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// able has all abilities from which polls derive calls.
type able struct {
	plain
	listing time.Duration
	lists   *int
	sick    error
}

func (able) Stats(context.Context) (system.Holdings, error) {
	return system.Holdings{Objects: 3, Absolute: 300, Disk: -1, Entries: -1, Inodes: 5}, nil
}

func (a able) List(_ context.Context, visit func(system.Object) error) error {
	*a.lists++
	time.Sleep(a.listing)
	return errors.Join(visit(system.Object{Size: 10}), visit(system.Object{Size: 20}))
}

func (a able) Health(context.Context) error { return a.sick }

func TestCallsFromAbilities(t *testing.T) {
	lists := 0
	var p record.Poll
	c := &Collector{Node: able{lists: &lists, sick: errors.New("ill")}, Now: since(time.Now()),
		Keep: func(got record.Poll) error { p = got; return nil }}
	if err := c.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"objects": 3, "absolute_bytes": 300, "inodes": 5,
		"files": 2, "file_bytes": 30,
	}
	for _, r := range p.Readings {
		if v, ok := want[r.Name]; !ok || r.Value != v || r.Bad != "" {
			t.Errorf("%+v, want %v (%v)", r, v, ok)
		}
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("not read: %v", want)
	}
	var names []string
	for _, call := range p.Calls {
		names = append(names, call.Name)
		if (call.Name == "health") != (call.Error == "failed: ill") {
			t.Errorf("%+v", call)
		}
	}
	if !slices.Equal(names, []string{"stats", "list", "health"}) {
		t.Errorf("%v", names)
	}
}

// TestListingRests checks that a listing that takes ten seconds is repeated every 200 seconds, and
// a quick one in each poll.
func TestListingRests(t *testing.T) {
	for listing, want := range map[time.Duration]int{time.Second: 61 + 1, 10 * time.Second: 16 + 1} {
		synctest.Test(t, func(t *testing.T) {
			lists, polls := 0, 0
			c := &Collector{Node: able{lists: &lists, listing: listing}, Every: time.Minute, Now: since(time.Now()),
				Keep: func(record.Poll) error { polls++; return nil }}
			run(t, c, time.Hour+30*time.Second) // polls at 0:00 to 60:00, and the last poll, which always lists
			if polls != 62 || lists != want {
				t.Errorf("%v: %d listings, want %d, in %d polls", listing, lists, want, polls)
			}
		})
	}
}
