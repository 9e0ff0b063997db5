package scenario

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
	"github.com/plimsoll-project/plimsoll/scenario/sync"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
)

// ViewOf is how the numbers of a scenario are read; nil: not yet by package analysis.
func ViewOf(name string) *analysis.View {
	switch name {
	case "disseminate":
		return disseminate.View()
	case "overhead":
		return overhead.View()
	case "retrieve":
		return retrieve.View()
	case "sync":
		return sync.View()
	case "upload":
		return upload.View()
	case "collect":
		return upload.CollectView()
	}
	return nil
}
