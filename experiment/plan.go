package experiment

import (
	"slices"
	"strings"
)

// PlanFormat is the version of the plan's format; oldestPlan is the oldest that reports
// can be made of.
const (
	PlanFormat = 5
	oldestPlan = 2
)

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
	ID          string       `json:"id"` // "c001"
	System      string       `json:"system"`
	Baseline    bool         `json:"baseline,omitempty"`
	Factors     []Factor     `json:"factors"` // the system, then what varies, in the order of the format's reference
	Link        Link         `json:"link"`
	Data        Data         `json:"data"`
	Retrieve    *Retrieve    `json:"retrieve,omitempty"`
	Overhead    *Overhead    `json:"overhead,omitempty"`
	Upload      *Upload      `json:"upload,omitempty"`
	Collect     *Collect     `json:"collect,omitempty"`
	Disseminate *Disseminate `json:"disseminate,omitempty"`
	Sync        *Sync        `json:"sync,omitempty"`
	Estimate    CellEstimate `json:"estimate"` // of one trial
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
	// of Number: "B", "bit/s", "s", "1/s", "ratio", "1"; empty when Value is a word
	Unit string `json:"unit,omitempty"`
}

// CellsOf are the cells of a system.
func (p *Plan) CellsOf(system string) []Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return c.System != system })
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

// Estimate is what a run is expected to take, roughly, from the links, sizes and
// bounds.
type Estimate struct {
	Trials  int     `json:"trials"` // warm-up included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	Bound   Bound   `json:"bound,omitempty"`
}

// CellEstimate is what one trial of a cell is expected to take.
type CellEstimate struct {
	// of load; what surrounds a trial is not in it, but for what a swarm publishes and reads back
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	// seconds of one operation, when all workers are busy; of a swarm without faults
	Operation float64 `json:"operation"`
	// what bounds it: "link", "latency", "arrivals", "schedule", "machine"; empty: not known
	Limit string `json:"limit"`
	Bound Bound  `json:"bound,omitempty"`
}

// Bound is what kind of number an estimate is.
type Bound string

const (
	Exact   Bound = ""         // as near as it goes
	AtLeast Bound = "at least" // the system may take any time longer
	Unknown Bound = "unknown"  // the data set is read when the run begins
	Open    Bound = "open"     // it goes on until something ends it
)

// Imported says that a run was not executed by Plimsoll but read from what
// another program recorded. Such a run has trials and a report like any other,
// and can neither be resumed nor repeated from its plan.
type Imported struct {
	Format string   `json:"format"` // of what was read, in a few words
	From   []string `json:"from"`   // names of the files
	// Unknown is what the source does not report and Plimsoll would have measured,
	// in the words of a report: "the links were not measured".
	Unknown []string `json:"unknown"`
	// Notes are what else a reader must know of how the source was read.
	Notes []string `json:"notes,omitempty"`
}

// Import is the plan as that of a run which was imported: its cells are those
// that were found, blocks is the largest number of trials that one of them was
// to have.
func (p *Plan) Import(from Imported, found func(Cell) bool, blocks int) (*Plan, error) {
	imported := *p
	imported.Imported = &from
	imported.Blocks = blocks
	imported.Cells = slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return !found(c) })
	for i := range imported.Cells {
		imported.Cells[i].Estimate = CellEstimate{} // nothing is going to be executed
	}
	imported.Estimate = Estimate{Trials: len(imported.Cells) * blocks}
	return imported.seal()
}
