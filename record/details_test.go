package record

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
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

// A run of schema 1 can be read, and a resumed one is brought up to date.
func TestOlderSchema(t *testing.T) {
	r := create(t)
	w, err := r.Begin("c001", 0, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.End(Trial{Metrics: map[string]float64{"throughput": 7}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	db := openDB(t, filepath.Join(r.Dir(), dbFile))
	if _, err := db.Exec(`DROP TABLE details; UPDATE meta SET value = '1' WHERE key = 'record.schema'`); err != nil {
		t.Fatal(err)
	}
	db.Close()

	old, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	trials, err := old.Trials()
	if err != nil || len(trials) != 1 || trials[0].Metrics["throughput"] != 7 || trials[0].Details != nil {
		t.Fatalf("got %+v, %v", trials, err)
	}
	old.Close()

	resumed, err := Resume(r.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err = resumed.Begin("c002", 0, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.End(Trial{Details: []Detail{{DetailPhase, "hash", 1}}}); err != nil {
		t.Fatal(err)
	}
	trials, err = resumed.Trials()
	if err != nil || len(trials) != 2 || len(trials[1].Details) != 1 || resumed.Reader.Meta()[keySchema] != "2" {
		t.Fatalf("got %+v, %v, schema %s", trials, err, resumed.Reader.Meta()[keySchema])
	}
	if err := resumed.Close(); err != nil {
		t.Fatal(err)
	}

	db = openDB(t, filepath.Join(r.Dir(), dbFile))
	if _, err := db.Exec(`UPDATE meta SET value = '3' WHERE key = 'record.schema'`); err != nil {
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
