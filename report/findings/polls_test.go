package findings

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// below are polls of a minute each, and how many objects each told to be below their
// redundancy.
func below(objects ...float64) Below {
	b := Below{Name: "siad", Objects: objects}
	for i := range objects {
		b.Start, b.End = append(b.Start, float64(60*i)), append(b.End, float64(60*i+1))
	}
	return b
}

func pollCases() map[string]example {
	gaps := func(missed, failed int64) []Polled {
		return []Polled{{Name: "siad", Made: 1000, Missed: missed, Failed: []Wrong{{"renter", failed, "HTML"}}}}
	}
	absurd := gaps(0, 0)
	absurd[0].Absurd = []Wrong{{"wallet.balance", 1, "an amount below zero"}}
	return map[string]example{
		"redundancy-fell":     when(RedundancyFell, []Below{below(0, 3, 5, 4)}, []Below{below(0, 3, 5, 0, 0, 1)}),
		"redundancy-repaired": when(RedundancyFell, []Below{below(0, 3, 5, 0)}, []Below{below(0, 3, 0, 5, 4)}),
		"gaps":                when(Gaps, gaps(4, 6), gaps(4, 5)),
		"absurd":              when(Absurd, absurd, gaps(4, 6)),
		"ended":               when(Ended, []Ending{{Name: "siad", By: "done", Sessions: 1}}, []Ending{{Name: "siad", Sessions: 1}}),
	}
}

func TestLacks(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		of   Below
		want []Lack
	}{
		{below(nan, 0, 3, nan, 5, 0, 0), []Lack{{From: 120, To: 301, Objects: 5}}}, // a gap ends nothing
		{below(0, 3, 0, 3, 0), nil}, // a poll each is a piece that moves
		{below(0, 3, 4, nan, nan), []Lack{{From: 60, To: 121, Objects: 4, Open: true}}},
		{below(2, 2, 0, 1, 1), []Lack{{From: 0, To: 121, Objects: 2}, {From: 180, To: 241, Objects: 1, Open: true}}},
		{below(), nil},
	} {
		if got := c.of.Lacks(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.of.Objects, got, c.want)
		}
	}
}

func TestPollsInWords(t *testing.T) {
	long := strings.Repeat("<html>", 40)
	for _, c := range []struct {
		said []Finding
		want string
	}{
		{RedundancyFell([]Below{below(0, 3, 1)}), "siad: up to 3 objects, from 1 min after the beginning; not repaired within 1 min 1 s, when the watching ended"},
		{RedundancyFell([]Below{below(0, 3, 1, 0)}), "siad: up to 3 objects, from 1 min after the beginning, for 2 min 1 s"},
		{Gaps([]Polled{{Name: "siad", Made: 10, Missed: 1, Failed: []Wrong{{"renter", 2, long}}}, {Name: "unseen", Missed: 9}}), "siad: 1 poll left out of 11; renter failed ×2, last: " + long[:119] + "…"},
		{Absurd([]Polled{{Name: "siad", Absurd: []Wrong{{"wallet.balance", 2, "an amount below zero"}}}}), "siad: wallet.balance ×2, last: an amount below zero"},
		{Ended([]Ending{{Name: "siad", By: "time", Why: "24h0m0s are over", Sessions: 3, CutOff: 1, Unrecorded: 5, Crashes: 2}}), "siad: time, 24h0m0s are over; 3 sessions, 1 of them cut off (attempts whose details were lost with them, or that they cut off: 5 at least; what became of the objects is known), 2 crashes"},
	} {
		if len(c.said) != 1 || strings.Join(c.said[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", c.said, c.want)
		}
	}
}
