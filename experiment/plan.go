package experiment

import (
	"slices"
	"strings"
)

// PlanFormat is the version of the plan's format. oldestPlan is the oldest format from which
// reports can be made.
const (
	PlanFormat = 5
	oldestPlan = 2
)

// Plan is an experiment in its canonical form: with all defaults, and every cell written out. Files
// with the same meaning have the same plan and hash.
type Plan struct {
	Format     int        `json:"format"`
	Hash       string     `json:"hash"` // SHA-256 of the plan's JSON without this field, in hex
	Experiment Experiment `json:"experiment"`
	Cells      []Cell     `json:"cells"`
	Warmup     int        `json:"warmup"` // blocks executed before the measured ones
	Blocks     int        `json:"blocks"` // measured blocks, at most
	Estimate   Estimate   `json:"estimate"`
	// Imported is set if the run was not executed by Plimsoll.
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

// Factor is one level of one factor.
type Factor struct {
	Path   string  `json:"path"`  // "retrieve.concurrency"; "system" for the system
	Label  string  `json:"label"` // "concurrency"
	Value  string  `json:"value"` // as in the file, canonical: "10MiB"
	Number float64 `json:"number,omitempty"`
	// of Number: "B", "bit/s", "s", "1/s", "ratio", "1"; empty when Value is a word
	Unit string `json:"unit,omitempty"`
}

// CellsOf returns the cells of a system.
func (p *Plan) CellsOf(system string) []Cell {
	return slices.DeleteFunc(slices.Clone(p.Cells), func(c Cell) bool { return c.System != system })
}

// Group returns a text that is equal for cells that differ only in the system: ratios to the
// baseline are taken within a group. It is empty if only the system varies.
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

// Estimate is the expected time and size of a run, roughly, from the links, sizes and bounds.
type Estimate struct {
	Trials  int     `json:"trials"` // warm-up included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	Bound   Bound   `json:"bound,omitempty"`
}

// CellEstimate is the expected time and size of one trial of a cell.
type CellEstimate struct {
	// of the load alone; for a swarm, publishing and reading back are included
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"` // file bytes
	// seconds of one operation if all workers are busy; of a swarm without faults
	Operation float64 `json:"operation"`
	Bound     Bound   `json:"bound,omitempty"`
}

// Bound is the kind of number of an estimate.
type Bound string

const (
	Exact   Bound = ""         // as accurate as possible
	AtLeast Bound = "at least" // the system may take much longer
	Unknown Bound = "unknown"  // the data set is read when the run begins
	Open    Bound = "open"     // the trial continues until something ends it
)

// Imported describes a run that was not executed by Plimsoll but read from another program's
// records. Such a run has trials and a report like any other, but it can neither be resumed nor be
// repeated from its plan.
type Imported struct {
	Format string   `json:"format"` // of the source, in a few words
	From   []string `json:"from"`   // names of the files
	// Unknown lists what the source does not report but Plimsoll would have measured, in the words
	// of a report: "the links were not measured".
	Unknown []string `json:"unknown"`
	// Notes holds further information for readers about how the source was read.
	Notes []string `json:"notes,omitempty"`
}

// Import returns the plan of an imported run: its cells are those found, and blocks is the largest
// number of trials that any of them was to have.
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
