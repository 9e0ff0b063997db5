package experiment

import "strings"

// PlanFormat is the version of the plan's format.
const PlanFormat = 1

// Plan is an experiment in its canonical form: every default filled in, every
// cell written out. Two files that mean the same have the same plan and hash.
type Plan struct {
	Format     int        `json:"format"`
	Hash       string     `json:"hash"` // SHA-256 of the plan's JSON without this field, in hex
	Experiment Experiment `json:"experiment"`
	Cells      []Cell     `json:"cells"`
	// Skipped are the cells left out because they would take too long. Their IDs
	// are used by no other cell.
	Skipped  []SkippedCell `json:"skipped,omitempty"`
	Warmup   int           `json:"warmup"` // blocks executed before the measured ones
	Blocks   int           `json:"blocks"` // measured blocks, at most
	Estimate Estimate      `json:"estimate"`
	// Imported is set when the run was not executed by Plimsoll.
	Imported *Imported `json:"imported,omitempty"`
}

// Cell is one combination of the levels of all factors, for one system.
type Cell struct {
	ID          string               `json:"id"` // "c001"
	System      string               `json:"system"`
	Baseline    bool                 `json:"baseline,omitempty"`
	Factors     []Factor             `json:"factors"` // the system, then what varies, in the order of the format's reference
	Link        ResolvedLink         `json:"link"`
	Data        ResolvedData         `json:"data"`
	Retrieve    *ResolvedRetrieve    `json:"retrieve,omitempty"`
	Overhead    *ResolvedOverhead    `json:"overhead,omitempty"`
	Upload      *ResolvedUpload      `json:"upload,omitempty"`
	Collect     *ResolvedCollect     `json:"collect,omitempty"`
	Disseminate *ResolvedDisseminate `json:"disseminate,omitempty"`
	Sync        *ResolvedSync        `json:"sync,omitempty"`
	Estimate    CellEstimate         `json:"estimate"` // of one trial
}

// SkippedCell is a combination that is not executed, and why.
type SkippedCell struct {
	ID      string   `json:"id"`
	System  string   `json:"system"`
	Factors []Factor `json:"factors"`
	Why     string   `json:"why"`
}

// Factor is one level of one factor.
type Factor struct {
	Path   string  `json:"path"`  // "retrieve.concurrency"; "system" for the system
	Label  string  `json:"label"` // "concurrency"
	Value  string  `json:"value"` // as in the file, canonical: "10MiB"
	Number float64 `json:"number,omitempty"`
	Unit   string  `json:"unit,omitempty"` // of Number: "B", "bit/s", "s", "1/s", "ratio", "1"; empty when Value is a word
}

// Factor is the cell's level of the factor at path, if it varies.
func (c Cell) Factor(path string) (Factor, bool) {
	for _, f := range c.Factors {
		if f.Path == path {
			return f, true
		}
	}
	return Factor{}, false
}

// Group is the same for cells that differ only in the system: ratios to the
// baseline are taken within a group. It is empty when only the system varies.
func (c Cell) Group() string {
	var parts []string
	for _, f := range c.Factors {
		if f.Path != systemPath {
			parts = append(parts, f.Path+"="+f.Value)
		}
	}
	return strings.Join(parts, " ")
}

// systemPath is the path of the factor that every cell has.
const systemPath = "system"

// ResolvedLink is a [Link] with one value for each field. Zero means unlimited
// (Rate) or chosen by the testbed (Queue).
type ResolvedLink struct {
	Rate       BitRate  `json:"rate"`
	Delay      Duration `json:"delay"`
	Jitter     Duration `json:"jitter"`
	Loss       Fraction `json:"loss"`
	Queue      Bytes    `json:"queue"`
	Congestion string   `json:"congestion"`
	IPv6       bool     `json:"ipv6"`
	Tolerance  Fraction `json:"tolerance"`
	Emulator   string   `json:"emulator"`
}

// Shaped reports whether the link is to be different from the bare machine.
func (l ResolvedLink) Shaped() bool {
	return l.Rate != 0 || l.Delay != 0 || l.Jitter != 0 || l.Loss != 0 || l.Queue != 0
}

// ResolvedData is a [Data] with one size. It is zero where the system is
// attached to and may not be written to: it has its own objects. Objects is 0
// for a directory and a trace: they have as many as they have.
type ResolvedData struct {
	Objects int   `json:"objects"`
	Size    Bytes `json:"size"`

	Mix          string   `json:"mix,omitempty"`
	Spread       string   `json:"spread,omitempty"`
	Directory    string   `json:"directory,omitempty"`
	Trace        string   `json:"trace,omitempty"`
	Copies       int      `json:"copies,omitempty"`
	Compressible Fraction `json:"compressible,omitempty"`
	Duplicate    Fraction `json:"duplicate,omitempty"`
}

// ResolvedRetrieve is a [Retrieve] with one value for each field. Zero means
// "no such bound" for Requests, Bytes, Duration and PerWorker.
type ResolvedRetrieve struct {
	Concurrency int               `json:"concurrency"` // 0 with arrivals
	Range       RangeSize         `json:"range"`
	Order       string            `json:"order"`
	Connections string            `json:"connections"`
	Receive     string            `json:"receive"`
	HTTP        string            `json:"http"`
	Arrivals    *ResolvedArrivals `json:"arrivals,omitempty"`
	Requests    int64             `json:"requests"` // where sizes are known, the bound in bytes is folded into it
	Bytes       Bytes             `json:"bytes"`    // left only where sizes are not known
	Duration    Duration          `json:"duration"`
	PerWorker   int               `json:"per_worker"`
}

// ResolvedOverhead is an [Overhead] with one value for each field.
type ResolvedOverhead struct {
	Operation   string   `json:"operation"`
	Connections string   `json:"connections"`
	Concurrency int      `json:"concurrency"`
	Count       int      `json:"count"`
	Time        Duration `json:"time"`
	Longest     Duration `json:"longest"`
	RangeOf     Bytes    `json:"range_of"`
	Objects     int      `json:"objects"`
}

// ResolvedArrivals is an [Arrivals] with one rate.
type ResolvedArrivals struct {
	Process     string `json:"process"`
	Rate        OpRate `json:"rate"`
	To          OpRate `json:"to"`
	Steps       []Step `json:"steps,omitempty"`
	MaxInFlight int    `json:"max_in_flight"`
}

// Estimate is what a run is expected to take, from the links, sizes and
// bounds; How says what was assumed. It is an upper bound where repetitions
// may end early.
type Estimate struct {
	Trials  int     `json:"trials"` // warm-up included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	How     string  `json:"how"`
	Bound   Bound   `json:"bound,omitempty"`
}

// CellEstimate is what one trial of a cell is expected to take.
type CellEstimate struct {
	Seconds   float64 `json:"seconds"`   // of load; what surrounds a trial is not in it, but for what a swarm publishes and reads back
	Bytes     float64 `json:"bytes"`     // file bytes
	Operation float64 `json:"operation"` // seconds of one operation, when all workers are busy; of a swarm without faults
	Limit     string  `json:"limit"`     // what bounds it: "link", "latency", "arrivals", "schedule", "machine"; empty: not known
	Bound     Bound   `json:"bound,omitempty"`
}

// Bound is what kind of number an estimate is.
type Bound string

const (
	Exact   Bound = ""         // as near as it goes
	AtLeast Bound = "at least" // the system may take any time longer
	Unknown Bound = "unknown"  // the data set is read when the run begins
	Open    Bound = "open"     // it goes on until something ends it
)
