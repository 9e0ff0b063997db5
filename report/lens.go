package report

// lens is what is particular to the report of one scenario. All else, the
// statistics, the validity, the page, is the same for every scenario.
type lens struct {
	headline   func(planView) string // the metric that verdicts speak of
	steady     string                // the metric whose drift is looked for; empty: blocks are in the model
	relieve    string                // what to do when the generator is the limit
	operation  [2]string             // what an operation is called: one, and several
	axis       []string              // factors that suit the axis, best first
	facets     func(*shape, []*Cell) // which of the other factors make panels; nil: all
	read       func(*Report, *input) // what is read of the trials before they are counted; nil: nothing
	failures   []rule                // stand in for the findings of deadlines and of failures; nil: those
	table      func(*Report) Table   // stands in for the table of cells; nil: one of columns
	loadLine   func(*Report) string  // the paragraph on the load line; empty: there is none in this run
	compared   []string              // metrics whose ratios to the baseline are computed
	columns    []metricColumn        // of the table of cells
	resources  []metricColumn        // of the table of resources
	text       func(*Report) []textMetric
	before     func(*Report, *input)                        // what cells need before they are compared; nil: nothing
	alike      func(r *Report, key string, a, b *Cell) bool // whether their ratio compares like with like; nil: always
	work       func(*Report, *input)                        // what is computed beyond cells; nil: nothing
	rules      []rule                                       // findings of its own
	judge      func(*Report) *Verdict                       // stands in for the verdict of all scenarios; nil, or none: that
	verdict    func(*Report) string                         // a clause after "Every request was served"; nil: the comparison with the baseline
	answers    func(*Report) []Answer
	draw       func(*Report, *input) error
	sections   func(*Report) []Section
	textTables func(*Report) []textTable // stand in for the tables of cells; nil, or none: those
}

// metricColumn is a metric as a column of a table.
type metricColumn struct {
	key, head string
	unit      string // to show it in, where that is not the metric's own
}

// Section is a table of its own on the page, for what cells do not show.
type Section struct {
	ID, Title, Words string
	Table            Table
}

// lensOf is the lens of a scenario.
func lensOf(scenario string) lens {
	switch scenario {
	case "overhead":
		return overheadLens()
	case "upload":
		return uploadLens()
	case "collect":
		return collectLens()
	case "disseminate":
		return disseminateLens()
	case "sync":
		return syncLens()
	}
	return retrieveLens()
}
