package record

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// syntheticMark is mark i of a swarm of 32 nodes, of which each leaves one for
// each percent of 100 MB, at a hundred polls a second. It can be told from i alone.
func syntheticMark(i int64) Mark {
	rng := rand.New(rand.NewPCG(uint64(i), 3))
	at := 100*time.Millisecond*time.Duration(i/32) + time.Duration(rng.IntN(10_000_000))
	verified := (1+i/32)*1_000_000 + rng.Int64N(16)*16384
	m := Mark{
		Node: int(i % 32), Before: at - 100*time.Millisecond, Start: at, End: at + time.Duration(rng.IntN(3_000_000)),
		Verified: verified, Written: verified - rng.Int64N(2)*16384, Received: verified + rng.Int64N(10)*16384,
		Sent: rng.Int64N(2 * verified), Peers: rng.IntN(32),
	}
	switch i % 7 {
	case 1:
		m.Written, m.Received, m.Sent, m.Peers = -1, -1, -1, -1
	case 2:
		m.Complete = true
	case 3:
		m.Trouble = "hash check failed: \"ü\"\n"
	case 4:
		m.Written, m.Peers = 0, 0
	}
	return m
}

func syntheticMarks(from, n int64) []Mark {
	marks := make([]Mark, n)
	for i := range marks {
		marks[i] = syntheticMark(from + int64(i))
	}
	return marks
}

func TestMarksAreReadBack(t *testing.T) {
	r := create(t)
	var writers []*TrialWriter
	for block := range 2 {
		w, err := r.Begin("c001", block, false, time.Now())
		must(t, err)
		writers = append(writers, w)
	}
	n := int64(2*markTable.page + 3)
	for from := int64(0); from < n; from += 501 {
		for i, w := range writers { // two trials at once do not mix
			must(t, w.Marks(syntheticMarks(from+int64(i)*n, min(501, n-from))))
		}
	}
	must(t, r.Flush())
	for i, w := range writers {
		if d := cmp.Diff(syntheticMarks(int64(i)*n, n), collect(t, r.Marks(w.ID()))); d != "" {
			t.Errorf("marks of trial %d (-want +got):\n%s", w.ID(), d)
		}
	}
	if got := collect(t, r.Marks(99)); len(got) > 0 {
		t.Errorf("a trial that there is not has %d marks", len(got))
	}
}

func TestImpossibleMarksAreRefused(t *testing.T) {
	r := create(t)
	w, err := r.Begin("c001", 0, false, time.Now())
	must(t, err)
	good := syntheticMark(40)
	for name, spoil := range map[string]func(*Mark){
		"node":     func(m *Mark) { m.Node = -1 },
		"end":      func(m *Mark) { m.End = m.Start - 1 },
		"before":   func(m *Mark) { m.Before = m.Start + 1 },
		"verified": func(m *Mark) { m.Verified = -1 },
		"sent":     func(m *Mark) { m.Sent = -2 },
		"far":      func(m *Mark) { m.End = 11 * 365 * 24 * time.Hour },
	} {
		bad := good
		spoil(&bad)
		if err := w.Marks([]Mark{good, bad}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := w.Marks([]Mark{good}); err != nil {
		t.Fatalf("the trial does not go on: %v", err)
	}
	must(t, w.End(Trial{}))
	if got := collect(t, r.Marks(w.ID())); len(got) != 1 {
		t.Errorf("%d marks, one was accepted", len(got))
	}
	if err := w.Marks([]Mark{good}); err == nil {
		t.Error("a trial that has ended takes marks")
	}
}

// A trial that goes on numbers its marks on from those that it has, and its
// clock from the last of them.
func TestMarksOfATrialThatGoesOn(t *testing.T) {
	r := create(t)
	w, err := r.Begin("c001", 0, false, time.Now())
	must(t, err)
	must(t, w.Marks(syntheticMarks(0, 100)))
	must(t, r.Close())
	r, err = Resume(r.Dir(), nil, func(Trial) bool { return true })
	must(t, err)
	defer r.Close()
	w, last, err := r.Continue(Trial{ID: w.ID()})
	must(t, err)
	var latest time.Duration
	for i := range int64(100) {
		latest = max(latest, syntheticMark(i).End)
	}
	if last != latest {
		t.Errorf("the last moment is %v, want %v", last, latest)
	}
	must(t, w.Marks(syntheticMarks(100, 100)))
	must(t, r.Flush())
	if d := cmp.Diff(syntheticMarks(0, 200), collect(t, r.Marks(w.ID()))); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
}

// markUntilKilled records marks and events of one trial and says, a flush later,
// how many there are.
func markUntilKilled(args []string) error {
	run, err := Resume(args[0], nil, nil)
	if err != nil {
		return err
	}
	w, err := run.Begin("c001", 0, false, time.Unix(1700000000, 0))
	if err != nil {
		return err
	}
	for n := int64(0); ; n += 64 {
		if err := w.Marks(syntheticMarks(n, 64)); err != nil {
			return err
		}
		if err := w.Event(Event{At: time.Unix(1700000000, n), Kind: "fault", What: "crash",
			Detail: strconv.FormatInt(n, 10)}); err != nil {
			return err
		}
		if n%640 == 0 { // what has waited for its second
			if err := run.Flush(); err != nil {
				return err
			}
			fmt.Println(n + 64)
		}
	}
}

// Killing the process takes nothing of marks and events that were written, each
// batch is there whole, and a trial that is executed again has none of them.
func TestKill9LeavesMarksAndEventsWhole(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	run, err := Create(dir, []byte(`{}`), nil, nil)
	must(t, err)
	must(t, run.Close())
	for round := range 6 {
		lines := runUntilKilled(t, "marks", true, time.Duration(20*round)*time.Millisecond, dir)
		said, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
		must(t, err)
		rd, err := Open(dir)
		must(t, err)
		n := int64(0)
		for m, err := range rd.Marks(1) {
			must(t, err)
			if want := syntheticMark(n); m != want {
				t.Fatalf("mark %d is %+v, want %+v", n, m, want)
			}
			n++
		}
		events, err := rd.Events()
		must(t, err)
		for i, e := range events {
			if e.Trial != 1 || e.Detail != strconv.Itoa(64*i) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
		rd.Close()
		if n < said || n%64 != 0 || int64(len(events)) != n/64 && int64(len(events)) != n/64-1 {
			t.Fatalf("%d marks and %d events, %d marks had been written", n, len(events), said)
		}
	}
	run, err = Resume(dir, nil, nil)
	must(t, err)
	defer run.Close()
	events, err := run.Events()
	must(t, err)
	if n := len(collect(t, run.Marks(1))); n+len(events) > 0 {
		t.Errorf("a trial that is executed again has %d marks and %d events already", n, len(events))
	}
}
