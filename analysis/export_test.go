package analysis

import (
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// FrameOf is a frame of trials that were not executed.
func FrameOf(p *experiment.Plan, view *View, metrics []record.Metric, trials []record.Trial,
	links ...record.LinkCheck) *Frame {
	f := newFrame(p, view)
	f.Metrics, f.Checks = metrics, links
	f.addTrials(trials)
	lacking := f.lackingPercentiles()
	for _, t := range f.Trials {
		f.addRows(t, lacking)
	}
	f.index()
	f.setState(false)
	return f
}

// ExplainedReasons are the validity reasons that words.yaml explains.
func ExplainedReasons() (all []string) {
	for _, v := range texts().Invalid {
		all = append(all, v.Reasons...)
	}
	return all
}
