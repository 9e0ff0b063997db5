package experiment

import (
	"testing"
	"time"
)

// Hosts are dealt out to the regions in their order, whatever the order within a pair.
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
	names, trips := publishedTable(ibmCloud)
	if len(names) != 10 || len(trips) != 55 {
		t.Errorf("%d regions with %d round trips", len(names), len(trips))
	}
}

// What a plan expects follows the direction of the bytes.
func TestAsymmetricEstimates(t *testing.T) {
	operation := func(section string, set ...string) float64 {
		t.Helper()
		return mustPlan(t, "systems: [nginx]\nlink: {up: 10Mbit, down: 100Mbit}\ndata: {size: 10MB}\n"+section,
			set...).Cells[0].Estimate.Operation
	}
	read := operation("scenario: retrieve\nretrieve: {requests: 10}\n")
	for what, c := range map[string]struct{ got, want float64 }{
		"get":    {operation("scenario: overhead\noverhead: {operation: get}\n"), read},
		"put":    {operation("scenario: overhead\noverhead: {operation: put}\n"), read / 10},
		"upload": {operation("scenario: upload\nupload: {concurrency: 1}\n"), read / 10},
		"rate":   {operation("scenario: retrieve\nretrieve: {requests: 10}\n", "link={rate: 10Mbit}"), read},
	} {
		if c.got < 0.95*c.want || c.got > 1.1*c.want+0.05 {
			t.Errorf("%s: %g s, want %g s", what, c.got, c.want)
		}
	}
}
