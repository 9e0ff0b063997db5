// Package all lists every scenario.
package all

import (
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/scenario/retrieve"
	"github.com/plimsoll-project/plimsoll/scenario/sync"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
)

// All returns the scenarios in their order of display.
func All() []scenario.Scenario {
	return []scenario.Scenario{
		retrieve.Scenario{},
		overhead.Scenario{},
		upload.Scenario{},
		upload.Collect{},
		disseminate.Scenario{},
		sync.Scenario{},
	}
}

// ByName returns the scenario with a name, or nil.
func ByName(name string) scenario.Scenario {
	for _, s := range All() {
		if s.Name() == name {
			return s
		}
	}
	return nil
}
