package findings

import (
	"strings"
	"testing"
)

func objectCases() map[string]example {
	well := Objects{Name: "siad", Set: 500, Accepted: 500, Attempts: 500, Settle: 7200}
	of := func(look func([]Objects) []Finding, change func(*Objects)) example {
		ill := well
		change(&ill)
		return when(look, []Objects{ill}, []Objects{well})
	}
	going := Unfinished{Resume: "plimsoll resume runs/load", Stores: true, Tests: []Going{{Name: "siad", Seconds: 7200, Stores: true, Stored: 20, Set: 500}}}
	return map[string]example{
		"objects-missing":    of(ObjectsMissing, func(o *Objects) { o.Missing = 1 }),
		"objects-failed":     of(ObjectsNotStored, func(o *Objects) { o.Failed = 2 }),
		"objects-refused":    of(ObjectsNotStored, func(o *Objects) { o.Refused = 2 }),
		"objects-unreadable": of(ObjectsUnreadable, func(o *Objects) { o.Unreadable = 1 }),
		"not-durable":        of(ObjectsNotDurable, func(o *Objects) { o.Late = 3 }),
		"retried":            of(Retried, func(o *Objects) { o.Retried, o.Attempts = 4, 510 }),
		"adopted":            of(Adopted, func(o *Objects) { o.Adopted = 5 }),
		"partial":            when(Partial, going, Unfinished{Resume: going.Resume, Stores: true}),
	}
}

func TestObjectsInWords(t *testing.T) {
	some := []Objects{{Name: "siad", Set: 500, Accepted: 490, NotDurable: 3, Late: 2, Failed: 10, Retried: 12, Attempts: 530, Settle: 7200}, {Name: "renterd", Failed: 1}}
	for _, c := range []struct {
		said []Finding
		want string
	}{
		{ObjectsNotStored(some), "siad: 10 of 500 objects|renterd: 1 object"}, // of an unknown number
		{ObjectsNotDurable(some), "siad: of 490 accepted, 3 never and 2 later than 2 h after"},
		{Retried(some), "siad: 12 of 500 objects; 530 attempts altogether"},
	} {
		if len(c.said) != 1 || strings.Join(c.said[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", c.said, c.want)
		}
	}
}

// What is to be done depends on what goes on, and on whether it stores anything.
func TestUnfinishedSaysHowToGoOn(t *testing.T) {
	u := Unfinished{Resume: "plimsoll resume runs/load", Stores: true, Tests: []Going{{Name: "siad", Seconds: 7200, Stores: true, Stored: 20, Set: 500}, {Name: "watched", Seconds: 60}}}
	f := Partial(u)[0]
	if f.Try != "Go on with `plimsoll resume runs/load`; nothing is stored twice." || strings.Join(f.Evidence, "|") != "siad: 2 h so far, 20 of 500 objects stored|watched: 1 min so far" {
		t.Errorf("%+v", f)
	}
	u.Running, u.Stores = true, false
	if f := Partial(u)[0]; f.Try != "" || len(f.Evidence) != 2 { // there is nothing to resume while it runs
		t.Errorf("%+v", f)
	}
}
