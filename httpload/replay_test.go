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
	if _, err := runHere(t.Context(), spec, sink.Ops); err == nil || !strings.Contains(err.Error(), "the log has changed") {
		t.Errorf("a path without an object: %v", err)
	}
	spec.Arrivals = &workload.ArrivalSpec{Process: "log", Log: filepath.Join(t.TempDir(), "none"), Speed: 1}
	if _, err := runHere(t.Context(), spec, sink.Ops); !os.IsNotExist(err) {
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
