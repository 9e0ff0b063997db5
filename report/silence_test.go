package report

import (
	"iter"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
)

// A trial in which nothing comes for half a minute is found among those in which
// something comes in every second.
func TestSilenceOfARetrieval(t *testing.T) {
	whole := sharedReport(t)
	long := int64(0)
	r := &Report{Cells: whole.Cells, Trials: whole.Trials, shape: whole.shape, Systems: whole.Systems}
	in := &input{windows: func(trial int64) iter.Seq2[record.Window, error] {
		return func(yield func(record.Window, error) bool) {
			for s := range int64(60) {
				w := record.Window{Second: s, Bytes: 1 << 20}
				if trial == long && s > 20 && s < 50 {
					w.Bytes = 0
				}
				if !yield(w, nil) {
					return
				}
			}
		}
	}}
	r.silences(in)
	if f := silent(r); f != nil || len(r.moving) == 0 {
		t.Errorf("%+v", f)
	}
	for _, x := range r.Trials {
		if x.Valid() {
			long = x.ID
		}
	}
	r.silences(in)
	if f := silent(r); len(f) != 1 || len(f[0].Evidence) != 1 || !strings.Contains(f[0].Evidence[0], "nothing for 30.0 s from 20.0 s on") {
		t.Errorf("%+v", f)
	}
}
