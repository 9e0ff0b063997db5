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

// Of 1,000 objects with the exponent 1 the ten most popular get 39 % of the requests, with
// and without ranges, and the same seed gives the same sequence.
func TestScheduleZipf(t *testing.T) {
	objects := make([]Object, 1000)
	for i := range objects {
		objects[i].Size = 100
	}
	for _, size := range []int64{0, 10} {
		s := &Spec{Objects: objects, Range: size, Order: "random", Zipf: 1, Seed: 5}
		sc, again, top := newSchedule(s), newSchedule(s), 0
		for k := range int64(20_000) {
			r := sc.at(k)
			if r.object < 10 {
				top++
			}
			if r != again.at(k) {
				t.Fatalf("operation %d differs with the same seed", k)
			}
		}
		if top < 7_400 || top > 8_250 { // 7,825 expected, standard deviation 69
			t.Errorf("range %d: the ten most popular objects have %d of 20,000 requests", size, top)
		}
	}
}

// Each of two generators fetches a fair share of each of two objects, however unequal, and
// of every two operations one.
func TestShardsGetAllObjects(t *testing.T) {
	const n = 1000
	objects := []Object{{Size: 1}, {Size: 1 << 30}}
	for _, order := range []string{"random", "sequential"} {
		owners := make([]int, n)
		for shard := range 2 {
			sc := newSchedule(&Spec{Objects: objects, Order: order, Requests: n, Seed: 5, Shard: shard, Shards: 2})
			large, all := 0, 0
			for k := range n {
				r, ours, ok := sc.take()
				if !ok {
					t.Fatalf("%s: no operation %d", order, k)
				}
				if ours {
					all, large, owners[k] = all+1, large+r.object, owners[k]+1+shard
				}
			}
			if all != n/2 || large < n/5 || large > n*3/10 {
				t.Errorf("%s: shard %d fetches %d objects, the large one %d times", order, shard, all, large)
			}
		}
		for k := 0; k < n; k += 2 {
			if owners[k]+owners[k+1] != 3 || owners[k] == 0 || owners[k+1] == 0 {
				t.Fatalf("%s: operations %d and %d belong to shards %d and %d", order, k, k+1, owners[k]-1,
					owners[k+1]-1)
			}
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

// A limit in bytes is that of the requests, whatever their sizes, but allows each connection one.
func TestScheduleBytes(t *testing.T) {
	for _, c := range []struct {
		sizes       []int64
		concurrency int
		bytes, want int64
	}{
		{[]int64{100}, 4, 1000, 10}, {[]int64{100}, 4, 1001, 11}, {[]int64{100}, 4, 150, 8}, {[]int64{0}, 1, 5, 5},
		{[]int64{10, 1000}, 1, 2500, 6}, // after five, 2030
	} {
		s := Spec{Concurrency: c.concurrency, Bytes: c.bytes, Order: orderSequential, Shards: 2}
		for _, size := range c.sizes {
			s.Objects = append(s.Objects, Object{Size: size})
		}
		sc, n := newSchedule(&s), int64(0)
		for {
			if _, _, ok := sc.take(); !ok {
				break
			}
			n++
		}
		if n != c.want {
			t.Errorf("%+v: %d operations", c, n)
		}
	}
}
