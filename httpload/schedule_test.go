package httpload

import (
	"slices"
	"testing"
)

func TestScheduleStaysWithinObjects(t *testing.T) {
	objects := []Object{{Size: 100}, {Size: 37}, {Size: 10}, {Size: 1000}}
	for _, order := range []string{"random", "aligned", "sequential"} {
		sc := newSchedule(&Spec{Objects: objects, Range: 10, Order: order, Seed: 5})
		seen := map[int]bool{}
		offsets := map[int64]bool{}
		for k := range int64(40_000) {
			r := sc.at(k)
			if r.off < 0 || r.length != 10 || r.off+r.length > objects[r.object].Size {
				t.Fatalf("%s: operation %d: %+v of %d bytes", order, k, r, objects[r.object].Size)
			}
			if order != "random" && r.off%10 != 0 {
				t.Fatalf("%s: offset %d", order, r.off)
			}
			if r != sc.at(k) {
				t.Fatalf("%s: operation %d is not a function of its number", order, k)
			}
			seen[r.object] = true
			if r.object == 3 {
				offsets[r.off] = true
			}
		}
		if len(seen) != len(objects) {
			t.Errorf("%s: only objects %v", order, seen)
		}
		if want := map[string]int{"random": 980, "aligned": 100, "sequential": 100}[order]; len(offsets) < want {
			t.Errorf("%s: %d distinct offsets of object 3, want at least %d", order, len(offsets), want)
		}
		if order == "random" && !offsets[990] {
			t.Error("random: the last range is never asked for")
		}
	}
}

func TestScheduleSequential(t *testing.T) {
	sc := newSchedule(&Spec{Objects: []Object{{Size: 25}, {Size: 10}}, Range: 10, Order: "sequential"})
	var got [][2]int64
	for k := range int64(5) {
		r := sc.at(k)
		got = append(got, [2]int64{int64(r.object), r.off})
	}
	if want := [][2]int64{{0, 0}, {0, 10}, {1, 0}, {0, 0}, {0, 10}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
