package record

import (
	"errors"
	"time"
)

// ResumeKeeping is [Resume], but a trial that was running, and for which keep is
// true, loses nothing: [Run.Continue] goes on with it.
func ResumeKeeping(dir string, plan []byte, keep func(Trial) bool) (*Run, error) {
	return nil, errors.New("record: resume keeping: not there yet")
}

// Continue goes on with a trial that was kept: same ID, same epoch, summary and
// windows as the recorded operations have them. What it recorded of its end
// ([TrialWriter.Pause]) is removed. last is the latest moment that it recorded,
// since its epoch.
func (r *Run) Continue(t Trial) (w *TrialWriter, last time.Duration, err error) {
	return nil, 0, errors.New("record: continue: not there yet")
}

// Pause ends a session of a trial that is to go on in another: the trial stays
// running, with the metrics, details and notes of what there is so far, for a
// report of it.
func (w *TrialWriter) Pause(t Trial) error { return errors.New("record: pause: not there yet") }

// ID names the run directory: random, made by [Create], the same for its life.
// Runs made before schema 3 have none.
func (r *Reader) ID() string { return "" }
