package siad

import (
	"os"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

func TestChains(t *testing.T) {
	if os.Getenv("PLIMSOLL_SIAD") == "" {
		systemtest.Need(t, name, []system.Problem{{What: "PLIMSOLL_SIAD names no siad", Hint: System{}.Info().Install}})
	}
	systemtest.RunChains(t, systemtest.Chains{
		System: System{}, Options: system.Options{"modules": "gc"}, Spec: system.ChainSpec{Blocks: 350, Form: "v1",
			Seed: 1},
		Store: "consensus/consensus.db", NoStranger: true, Syncing: 2 * time.Minute,
	})
}
