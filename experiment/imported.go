package experiment

import "slices"

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
	imported.Cells = slices.Clone(p.Cells)
	imported.Cells = slices.DeleteFunc(imported.Cells, func(c Cell) bool { return !found(c) })
	for i := range imported.Cells {
		imported.Cells[i].Estimate = CellEstimate{} // nothing is going to be executed
	}
	imported.Estimate = Estimate{Trials: len(imported.Cells) * blocks}
	return imported.seal()
}
