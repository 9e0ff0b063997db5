package record

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestDetailsAndSkippedTrials(t *testing.T) {
	r := create(t)
	begin := func(cell string) *TrialWriter {
		w, err := r.Begin(cell, 0, false, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	details := []Detail{
		{DetailPhase, "upload", 0.25}, {DetailPhase, "connect", 0.01}, // the system's order, not the alphabet's
		{DetailRSSRest, "tahoe/client-1", 24e6},
	}
	if err := begin("c001").End(Trial{Details: details}); err != nil {
		t.Fatal(err)
	}
	if err := begin("c002").Skip("put of 10MB took 2 min, longer than overhead.longest (1m)"); err != nil {
		t.Fatal(err)
	}
	trials, err := r.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if got := trials[0]; !slices.Equal(got.Details, details) || !got.Valid() {
		t.Errorf("got %+v", got)
	}
	if got := trials[1]; got.State != Skipped || got.Valid() || got.Error == "" || got.Details != nil {
		t.Errorf("got %+v", got)
	}
	if err := begin("c003").End(Trial{Details: []Detail{details[0], details[0]}}); err == nil {
		t.Error("two details of the same name and kind")
	}
}

// Runs of older schemas can be read, and a resumed one is brought up to date.
// What they left running is executed again: nothing of it can go on.
func TestOlderSchemas(t *testing.T) {
	for version, drop := range map[string]string{
		"1": `DROP TABLE details; DROP VIEW calls; DROP VIEW readings; DROP TABLE jobs; DROP TABLE polls; DROP TABLE marks;`,
		"2": `DROP VIEW calls; DROP VIEW readings; DROP TABLE jobs; DROP TABLE polls; DROP TABLE marks;`,
		"3": `DROP TABLE marks;`,
		"4": ``,
	} {
		r := create(t)
		for _, cell := range []string{"c001", "c002"} {
			w, err := r.Begin(cell, 0, false, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if cell == "c001" {
				if err := w.End(Trial{Metrics: map[string]float64{"throughput": 7}}); err != nil {
					t.Fatal(err)
				}
			} else if err := w.Ops(newSynthetic(1, 100).take(10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		db := openDB(t, filepath.Join(r.Dir(), dbFile))
		if _, err := db.Exec(drop+`ALTER TABLE windows DROP COLUMN starved; DELETE FROM meta WHERE key = 'record.id'; UPDATE meta SET value = ? WHERE key = 'record.schema'`, version); err != nil {
			t.Fatal(err)
		}
		db.Close()

		old, err := Open(r.Dir())
		if err != nil {
			t.Fatal(err)
		}
		trials, err := old.Trials()
		if err != nil || len(trials) != 2 || trials[0].Metrics["throughput"] != 7 || trials[0].Details != nil {
			t.Fatalf("schema %s: got %+v, %v", version, trials, err)
		}
		counts, err := old.JobCounts(1)
		if err != nil || len(counts)+len(collect(t, old.Jobs(1)))+len(collect(t, old.Polls(1)))+len(collect(t, old.Marks(2))) != 0 || old.ID() != "" {
			t.Errorf("schema %s: jobs, polls or marks, or ID %q: %v", version, old.ID(), err)
		}
		if windows := collect(t, old.Windows(2)); len(windows) == 0 {
			t.Errorf("schema %s: no windows", version)
		}
		old.Close()

		resumed, err := ResumeKeeping(r.Dir(), nil, func(Trial) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		w, _, err := resumed.Continue(trials[1])
		if goesOn := version >= strconv.Itoa(goesOnSince); (err == nil) != goesOn {
			t.Errorf("a trial of schema %s goes on: %v, %v", version, !goesOn, err)
		}
		ops := int64(10)
		if err != nil {
			ops = 0
			if w, err = resumed.Begin("c002", 0, false, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Jobs(syntheticJob(1)), w.Poll(syntheticPoll(1, 1, 1)), w.Marks(syntheticMarks(0, 3)), w.End(Trial{Details: []Detail{{DetailPhase, "hash", 1}}})); err != nil {
			t.Fatal(err)
		}
		trials, err = resumed.Trials()
		if err != nil || len(trials) != 2 || trials[1].State != Done || len(trials[1].Details) != 1 || w.Summary().Counts().Ops != ops {
			t.Errorf("schema %s: got %+v, %v", version, trials, err)
		}
		if len(collect(t, resumed.Jobs(w.ID()))) != 1 || len(collect(t, resumed.Polls(w.ID()))) != 1 || len(collect(t, resumed.Marks(w.ID()))) != 3 {
			t.Errorf("schema %s: no jobs, polls or marks", version)
		}
		if got := resumed.Reader.Meta()[keySchema]; got != strconv.Itoa(schemaVersion) || len(resumed.ID()) != 16 {
			t.Errorf("schema %s became %s, ID %q", version, got, resumed.ID())
		}
		if err := resumed.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewerSchema(t *testing.T) {
	r := create(t)
	r.Close()
	db := openDB(t, filepath.Join(r.Dir(), dbFile))
	if _, err := db.Exec(`UPDATE meta SET value = '6' WHERE key = 'record.schema'`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := Open(r.Dir()); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("a newer schema: %v", err)
	}
}

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
