package experiment

import (
	"testing"
	"time"
)

// Hosts are assigned to the regions in turn; the order within a pair does not matter.
func TestRoundTrips(t *testing.T) {
	own := Regions{{Between: []string{"tokyo", "paris"}, RTT: Duration(240 * time.Millisecond)},
		{Between: []string{"paris"}, RTT: Duration(2 * time.Millisecond)}}
	for _, c := range []struct {
		link Link
		a, b int
		want time.Duration
	}{
		{Link{Delay: Duration(5 * time.Millisecond)}, 0, 9, 10 * time.Millisecond},
		{Link{Regions: own}, 0, 1, 240 * time.Millisecond},
		{Link{Regions: own}, 3, 2, 240 * time.Millisecond},
		{Link{Regions: own}, 0, 2, 0}, // in tokyo
		{Link{Regions: own}, 1, 5, 2 * time.Millisecond},
		{Link{Regions: Regions{{Table: "ibm-cloud"}}}, 0, 1, 98 * time.Millisecond},   // washington, frankfurt
		{Link{Regions: Regions{{Table: "ibm-cloud"}}}, 14, 3, 329 * time.Millisecond}, // sydney, saopaulo
		{Link{Regions: Regions{{Table: "ibm-cloud"}}}, 2, 12, 1800 * time.Microsecond},
	} {
		if got := c.link.RoundTrips()(c.a, c.b); got != c.want {
			t.Errorf("%v: from %d to %d: %s, want %s", c.link.Regions, c.a, c.b, got, c.want)
		}
	}
	names, trips := published().table()
	if len(names) != 10 || len(trips) != 55 {
		t.Errorf("%d regions with %d round trips", len(names), len(trips))
	}
}
