package httpload

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
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

// received is what a server saw of a request, and when.
type received struct {
	what string
	at   time.Time
}

// recording serves data at all paths but /gone, and notes the requests.
func recording(t *testing.T, secure bool, data []byte) (*httptest.Server, func() []received) {
	var mu sync.Mutex
	var all []received
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, received{strings.TrimSpace(r.Method + " " + r.RequestURI + " " + r.Header.Get("Range")),
			time.Now()})
		mu.Unlock()
		if r.URL.Path == "/gone" {
			http.NotFound(w, r)
			return
		}
		serveBytes(data)(w, r)
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, func() []received {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func writeLog(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const loggedAsIs = `{"ts":100.0,"method":"GET","uri":"/a?x=%2F","status":200,"bytes":1000}
{"ts":100.4,"method":"GET","uri":"//b","status":206,"bytes":10,"range":"bytes=5-14"}
{"ts":100.5,"method":"POST","uri":"/a","status":200,"bytes":1}
{"ts":100.8,"method":"HEAD","uri":"/a","status":200,"bytes":0}
{"ts":101.2,"method":"GET","uri":"/gone","status":200,"bytes":1000}
{"ts":101.6,"method":"GET","uri":"/a","status":304,"bytes":0}
`

// Every target gets the requests of the log in its order, none before its time, which is
// that of the log divided by the speed.
func TestReplayAsIs(t *testing.T) {
	t.Parallel()
	path := writeLog(t, loggedAsIs)
	requests := []string{"GET /a?x=%2F", "GET //b bytes=5-14", "HEAD /a", "GET /gone", "HEAD /a"}
	due := []time.Duration{0, 200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond,
		800 * time.Millisecond}
	for _, secure := range []bool{false, true} {
		s, seen := recording(t, secure, bytes.Repeat([]byte("x"), 1000))
		res, got := runSpec(t, Spec{
			Objects: []Object{{URL: s.URL + "/other", Size: -1}}, Insecure: true,
			Arrivals: &workload.ArrivalSpec{Process: "log", Log: path, LogSize: int64(len(loggedAsIs)), Speed: 2,
				AsIs: true}, MaxInFlight: 10, HTTP: "1.1",
		})
		if res.Outcomes["ok"] != 4 || res.Classes["status 404"] != 1 || res.Ops != 5 || res.Bytes != 1010 {
			t.Errorf("outcomes %v, classes %v, %d bytes", res.Outcomes, res.Classes, res.Bytes)
		}
		slices.SortFunc(got, func(a, b record.Op) int { return int(a.Intended - b.Intended) })
		for i, op := range got {
			if at := time.Duration(op.Intended - res.Started); at != due[i] || op.Start < op.Intended {
				t.Errorf("request %d was intended at %v and started %v after that, want %v", i, at,
					time.Duration(op.Start-op.Intended), due[i])
			}
		}
		var what []string
		server := seen()
		first := server[slices.IndexFunc(server, func(r received) bool { return r.what == requests[0] })].at
		// the first came no later than so long after its time
		latest := time.Duration(got[0].LastByte - got[0].Intended)
		for _, r := range server {
			what = append(what, r.what)
			if i := slices.Index(requests, r.what); i > 0 && r.at.Before(first.Add(due[i]-latest)) {
				t.Errorf("%s came %v after the first, before its time", r.what, r.at.Sub(first))
			}
		}
		slices.Sort(what)
		if want := slices.Sorted(slices.Values(requests)); !slices.Equal(what, want) {
			t.Errorf("the server got %q, want %q", what, want)
		}
	}
}

// Paths are mapped to objects in the order in which they come; each generator gets its share
// of one and the same sequence.
func TestReplayOfObjects(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, `{"ts":%d.%03d,"method":"GET","uri":"/%c","status":206,"bytes":100,"range":"bytes=%d-"}`+"\n",
			i/100, i%100, 'p'+i%3, i)
	}
	var objects []Object
	for i := range 3 {
		c := workload.Content{Seed: 7, Index: uint64(i), Size: 300}
		objects = append(objects, objectAt(serveContent(t, &c).URL, &c)...)
	}
	spec := Spec{Objects: objects, Arrivals: &workload.ArrivalSpec{Process: "log", Log: writeLog(t, log.String()),
		LogSize: int64(log.Len()), Speed: 10}, MaxInFlight: 20, Epoch: time.Now()}
	var all ops
	for _, part := range spec.Split(2) {
		part.Epoch = time.Now()
		res, got := runSpec(t, part)
		if res.Outcomes["ok"] != 100 {
			t.Errorf("outcomes %v, classes %v", res.Outcomes, res.Classes)
		}
		all = append(all, got...)
	}
	slices.SortFunc(all, func(a, b record.Op) int { return int(a.Offset - b.Offset) })
	for i, op := range all {
		if op.Offset != int64(i) || op.Object != uint32(i%3) || op.Length != 100 || op.Kind != record.OpRange {
			t.Fatalf("operation %d: %+v", i, op)
		}
	}
	spec.Objects = objects[:2]
	var sink ops
	if _, err := Run(t.Context(), spec, sink.Ops); err == nil || !strings.Contains(err.Error(), "the log has changed") {
		t.Errorf("a path without an object: %v", err)
	}
	spec.Arrivals = &workload.ArrivalSpec{Process: "log", Log: filepath.Join(t.TempDir(), "none"), Speed: 1}
	if _, err := Run(t.Context(), spec, sink.Ops); !os.IsNotExist(err) {
		t.Errorf("a log that is not there: %v", err)
	}
}

// A trial ends with the request that reaches a bound, however late the next one of the log
// comes. What was added to the log since it was planned is not replayed, and one that has
// become shorter is refused.
func TestReplayBounds(t *testing.T) {
	t.Parallel()
	const line = "{\"ts\":%d,\"method\":\"GET\",\"uri\":\"/a\",\"status\":200,\"bytes\":1000}\n"
	text := fmt.Sprintf(line+line+line, 100, 101, 3600)
	for name, test := range map[string]struct {
		spec     Spec
		size     int
		requests int64
		wrong    string
	}{
		"requests": {spec: Spec{Requests: 2}, size: len(text), requests: 2},
		"bytes":    {spec: Spec{Bytes: 1001}, size: len(text), requests: 2},
		"all":      {size: len(text), requests: 3},
		"grown":    {size: len(text) * 2 / 3, requests: 2},
		"shorter":  {size: len(text) + 1, requests: 3, wrong: "has changed"},
	} {
		s := test.spec
		s.Objects = []Object{{Size: -1}}
		s.Arrivals = &workload.ArrivalSpec{Process: "log", Log: writeLog(t, text), LogSize: int64(test.size), Speed: 1,
			AsIs: true}
		sc := newSchedule(&s)
		for more := true; more; {
			_, _, _, more = sc.claimDue(int64(2 * time.Hour))
		}
		err := fmt.Sprint(sc.failed())
		if sc.next != test.requests || !strings.Contains(err, cmp.Or(test.wrong, "<nil>")) {
			t.Errorf("%s: %d requests, %v", name, sc.next, err)
		}
		if late := sc.arrivalsEnd() > int64(time.Minute); late != (test.requests == 3) {
			t.Errorf("%s: the arrivals end at %v", name, time.Duration(sc.arrivalsEnd()))
		}
	}
}
