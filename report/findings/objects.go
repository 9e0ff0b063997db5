package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Objects counts what became of the objects of one load test.
type Objects struct {
	Name       string
	Set        int64 // in the data set; 0: it is not known how many
	Accepted   int64
	NotDurable int64 // accepted longer ago than Settle, and not at their full redundancy
	Late       int64 // came to it, and later than that
	Missing    int64
	Failed     int64
	Refused    int64
	Unreadable int64
	Retried    int64
	Adopted    int64
	Attempts   int64
	Settle     float64 // seconds that an object may take from accepted to durable
}

// SoFar is how many of a set of objects are stored; a set of 0 is not known.
func SoFar(stored, set int64) string {
	if set > 0 {
		return fmt.Sprintf("%s of %s stored", words.Count(stored), words.Plural(set, "object", "objects"))
	}
	return words.Plural(stored, "object", "objects") + " stored"
}

// some are so many of the objects.
func (o *Objects) some(n int64) string {
	if o.Set > 0 {
		return fmt.Sprintf("%s of %s", words.Count(n), words.Plural(o.Set, "object", "objects"))
	}
	return words.Plural(n, "object", "objects")
}

// counted is a finding's evidence of load tests in which some objects were so. One
// is enough: none of these happens to a system that works.
func counted(f Finding, all []Objects, n func(*Objects) int64, more func(*Objects) string) []Finding {
	for i := range all {
		o := &all[i]
		if k := n(o); k > 0 {
			s := o.Name + ": " + o.some(k)
			if more != nil {
				s += more(o)
			}
			f.Evidence = append(f.Evidence, s)
		}
	}
	return withEvidence(f)
}

// ObjectsMissing: accepted is a promise.
func ObjectsMissing(all []Objects) []Finding {
	return counted(Finding{Rule: "objects-missing", Tone: Bad, Title: "Accepted objects went missing",
		Text: "The system had accepted these objects, and did not list them, or not whole, when a later session compared. They are stored again."},
		all, func(o *Objects) int64 { return o.Missing }, nil)
}

// ObjectsNotStored names those that failed and those that the system would not take.
func ObjectsNotStored(all []Objects) []Finding {
	failed := counted(Finding{Rule: "objects-failed", Tone: Bad, Title: "Objects could not be stored",
		Text: "They failed as often as upload.retries allows, and were given up."},
		all, func(o *Objects) int64 { return o.Failed }, nil)
	refused := counted(Finding{Rule: "objects-refused", Tone: Bad, Title: "Objects were refused",
		Text: "The system would not take them, as often as upload.retries allows: that is its answer, not a failure on the way."},
		all, func(o *Objects) int64 { return o.Refused }, nil)
	return append(failed, refused...)
}

// ObjectsUnreadable: what could not be read could not be stored.
func ObjectsUnreadable(all []Objects) []Finding {
	return counted(Finding{Rule: "objects-unreadable", Tone: Warn, Title: "Some data could not be read",
		Text: "These objects were not stored because their own data could not be read, or changed meanwhile. That is no failure of the system; the data set was not stored whole."},
		all, func(o *Objects) int64 { return o.Unreadable }, nil)
}

// ObjectsNotDurable: accepted is not durable.
func ObjectsNotDurable(all []Objects) []Finding {
	f := Finding{Rule: "not-durable", Tone: Warn, Title: "Objects did not become durable",
		Text: "The system had accepted them, and they were not seen at their full redundancy within upload.settle. Accepted is not durable: until then they depend on fewer servers than was asked for."}
	for i := range all {
		if o := &all[i]; o.NotDurable+o.Late > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: of %s accepted, %s never and %s later than %s after", o.Name, words.Count(o.Accepted), words.Count(o.NotDurable), words.Count(o.Late), words.Moment(o.Settle)))
		}
	}
	return withEvidence(f)
}

// Retried: the time of a retried object is not that from its first attempt on.
func Retried(all []Objects) []Finding {
	return counted(Finding{Rule: "retried", Tone: Neutral, Title: "Some objects needed more than one attempt",
		Text: "Their time to store is that of the last attempt."},
		all, func(o *Objects) int64 { return o.Retried }, func(o *Objects) string {
			return fmt.Sprintf("; %s altogether", words.Plural(o.Attempts, "attempt", "attempts"))
		})
}

// Adopted: the time of an object that was found stored is not known.
func Adopted(all []Objects) []Finding {
	return counted(Finding{Rule: "adopted", Tone: Neutral, Title: "Some objects were found stored",
		Text: "A session ended while they were under way; the next one found them in the system, whole, and did not store them again. When they were accepted is not known, so they are in no time."},
		all, func(o *Objects) int64 { return o.Adopted }, nil)
}
