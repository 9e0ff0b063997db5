package analysis

// Ruling is what a run says to a gate.
type Ruling struct {
	Rule  string       `json:"rule"`
	Run   string       `json:"run"` // its directory
	State string       `json:"state"`
	Goal  bool         `json:"goal,omitempty"` // the scenario's own: it decides no exit status
	Why   string       `json:"why,omitempty"`
	Cells []CellRuling `json:"cells"`
}

// CellRuling is that of one cell.
type CellRuling struct {
	System string `json:"system"`
	Where  string `json:"where"`
	State  string `json:"state"`
	Value  Num    `json:"value"` // of the metric in its unit, or the ratio
	Lo     Num    `json:"lo"`    // each end by itself holds with 95 %
	Hi     Num    `json:"hi"`
	N      int    `json:"n"` // trials, or pairs of trials
	Why    string `json:"why"`
}

func (r *Result) planGates() []Ruling                       { return nil }
func (r *Result) gateVerdict(add func(t Tone, text string)) {}
func commonRules() []Rule                                   { return nil }
