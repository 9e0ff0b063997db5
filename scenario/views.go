package scenario

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
)

// ViewOf is how the numbers of a scenario are read; nil: not yet by package analysis.
func ViewOf(name string) *analysis.View {
	switch name {
	case "overhead":
		return overhead.View()
	case "retrieve":
		return retrieve.View()
	}
	return nil
}
