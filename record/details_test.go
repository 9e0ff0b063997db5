package record

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDetailsAndSkippedTrials(t *testing.T) {
	r := create(t)
	begin := func(cell string) *TrialWriter {
		w, err := r.Begin(cell, 0, false, time.Now())
		must(t, err)
		return w
	}
	details := []Detail{
		{DetailPhase, "upload", 0.25}, {DetailPhase, "connect", 0.01}, // the system's order, not the alphabet's
		{DetailRSSRest, "tahoe/client-1", 24e6},
	}
	must(t, begin("c001").End(Trial{Details: details}))
	must(t, begin("c002").End(Trial{State: Skipped, Error: "put of 10MB took 2 min, longer than overhead.longest"}))
	trials, err := r.Trials()
	must(t, err)
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

// Runs of older schemas can be read, and not resumed; those of newer ones neither.
func TestOtherSchemas(t *testing.T) {
	for version, readable := range map[int]bool{
		oldestSchema - 1: false, oldestSchema: true, starvedSince: true, schemaVersion + 1: false,
	} {
		r := create(t)
		must(t, writeTrial(r, 1, false))
		must(t, r.Close())
		statements := fmt.Sprintf(`UPDATE meta SET value = '%d' WHERE key = 'record.schema';`, version)
		if version < starvedSince {
			statements += `ALTER TABLE windows DROP COLUMN starved`
		}
		db, err := sql.Open("sqlite", filepath.Join(r.Dir(), dbFile))
		must(t, err)
		_, err = db.Exec(statements)
		must(t, errors.Join(err, db.Close()))
		old, err := Open(r.Dir())
		if (err == nil) != readable || errors.Is(err, ErrCorrupt) {
			t.Errorf("schema %d is read: %v, want %v", version, err, readable)
		}
		if err == nil {
			verify(t, old, map[int]bool{1: true}, nil)
			old.Close()
		}
		if _, err := Resume(r.Dir(), nil, nil); err == nil || !strings.Contains(err.Error(), "use the version") {
			t.Errorf("schema %d is resumed: %v", version, err)
		}
	}
}
