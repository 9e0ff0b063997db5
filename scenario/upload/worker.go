package upload

import (
	"context"

	"github.com/plimsoll-project/plimsoll/record"
)

// worker puts objects one after the other until none is left. Before it waits for
// one it calls waits.
func (t *trial) worker(ctx context.Context, worker int, waits func()) error {
	var next *readied
	for {
		if next == nil {
			object, ok := t.queue.take(ctx, waits)
			if !ok {
				return nil
			}
			if !t.readiesAhead() || t.inDoubt(object) {
				if err := t.attempt(ctx, worker, object); err != nil {
					return err
				}
				continue
			}
			var err error
			if next, err = t.ready(object); err != nil {
				return err
			}
			if next == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return t.unready(next)
		}
		ahead := t.readyNext()
		err := t.store(ctx, worker, next)
		one := <-ahead
		next = one.readied
		if err == nil {
			err = one.err
		}
		if err != nil {
			if next != nil {
				t.unready(next) // the record is closed by an error of it; the next session looks
			}
			return err
		}
	}
}

// readiesAhead reports whether an object is made ready while the one before it
// is still put: the system then never waits for the journal. Not where an object
// that is accepted keeps its place for long, nor where the order matters.
func (t *trial) readiesAhead() bool { return t.settler() == nil }

type ahead struct {
	*readied
	err error
}

// readyNext makes the next object ready meanwhile, if there is one now, and
// records with it what is held.
func (t *trial) readyNext() <-chan ahead {
	done := make(chan ahead, 1)
	go func() {
		var a ahead
		object, ok := t.queue.try()
		switch {
		case !ok:
			a.err = t.write()
		case t.inDoubt(object):
			t.queue.later(object, 0)
			a.err = t.write()
		default:
			a.readied, a.err = t.ready(object)
		}
		done <- a
	}()
	return done
}

// unready takes back that an object was made ready: it was not put.
func (t *trial) unready(r *readied) error {
	r.from.close()
	if r.first {
		r.job.State, r.job.Attempts = record.JobWaiting, r.job.Attempts-1
	}
	err := t.write(r.job.Job)
	t.queue.later(r.object, 0)
	return err
}
