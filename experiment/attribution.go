package experiment

import (
	"fmt"
	"math"
)

// Rounds and probes of a test with upload.attribution.
const (
	// AttributionRounds is how often each of files, bytes and idle time grows: once
	// for each order of the three.
	AttributionRounds = 6
	// AttributionProbe is the number of objects of one byte that are stored before
	// the first phase and at the end of each.
	AttributionProbe = 5
	// AttributionIdle is the least length of a phase without load, in intervals of
	// the polls.
	AttributionIdle = 2
)

// AttributionSteps is by what files and bytes grow in each round, in a test with
// upload.attribution: so many files of one byte, and so many bytes in few objects.
// The sums are those of the data set.
func AttributionSteps(objects, bytes int64, concurrency int) (files, few, share int64) {
	files, share = max(1, objects/AttributionRounds), max(1, bytes/AttributionRounds)
	// No more than a hundredth of the files, or bytes would raise files, too.
	few = max(1, min(int64(concurrency), files/100))
	return files, few, share
}

// attributed says what is stored instead of the data set.
func attributed(d ResolvedData, concurrency int) string {
	objects, bytes := d.Total()
	files, few, share := AttributionSteps(int64(objects), int64(bytes), concurrency)
	return fmt.Sprintf("attribution: only the sums of the data set count; it is stored as %d rounds of three phases: %s of 1 B, %s of %s each, and idle time (the longest phase so far, at least %d polls), in all six orders; %d probes of 1 B before the first phase and after each",
		AttributionRounds, plural(int(files), "file"), plural(int(few), "object"), RoughBytes(math.Ceil(float64(share)/float64(few))), AttributionIdle, AttributionProbe)
}

// estimateAttributed is the least that a test with attribution can take.
func estimateAttributed(c *Cell, objects, bytes, goodput float64) CellEstimate {
	files, few, share := AttributionSteps(int64(objects), int64(bytes), c.Upload.Concurrency)
	each := 2*c.Link.Delay.Seconds() + leastWork
	atOnce := float64(c.Upload.Concurrency)
	phase := float64(files) / atOnce * each
	load := math.Max(float64(few)/atOnce*each, float64(share)/goodput)
	probes := float64((1 + 3*AttributionRounds) * AttributionProbe)
	seconds := AttributionRounds*(phase+load+AttributionIdle*c.Upload.Poll.Seconds()) + probes*each
	return CellEstimate{
		Seconds: seconds, Bytes: float64(AttributionRounds*(share+files)) + probes,
		Operation: each + float64(share)/float64(few)/goodput, Limit: "schedule", Bound: AtLeast,
	}
}

// attribution refuses sources of data whose files would not be what is stored.
func (d *decoder) attribution(e *Experiment, source string) {
	if e.Upload == nil || !e.Upload.Attribution || source != "directory" && source != "trace" {
		return
	}
	d.fail("upload.attribution", d.first("upload.attribution", "upload"), "take it away, or give `data: {objects: 6000, size: 1MB}`: only the sums of objects and bytes count",
		"`upload.attribution` stores files of sizes of its own, not those of `data.%s`", source)
}
