package engine

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// checkMemory compares what the nodes of all systems take, which are there at the
// same time, and the RAM disk of a trial with what the machine has left.
func checkMemory(cfg Config, at nodePlace) []Problem {
	need := nodeMemory(cfg, at)
	if need.bytes == 0 {
		return nil
	}
	free, err := at.AvailableMemory()
	if err != nil {
		return []Problem{{What: err.Error()}}
	}
	return need.over(free)
}

// memoryNeed is what the nodes of a plan take.
type memoryNeed struct {
	bytes   float64
	parts   []string // in words, by system
	unknown []string // systems that do not say
}

// nodeMemory adds up the nodes of all systems of a plan on a machine and its largest RAM
// disk, of which there is one at a time. How large the chain on it is, is not known before it
// has been made: this is by the plan's estimate, and when the trial comes it is
// compared again.
func nodeMemory(cfg Config, at nodePlace) (need memoryNeed) {
	var disk float64
	for _, c := range chainCells(cfg.Plan) {
		if c.Sync.Storage == ramStorage {
			disk = max(disk, experiment.RAMDiskBytes(storeBytes(c)))
		}
	}
	if disk > 0 && at.first {
		need.bytes += disk + testbed.RAMReserve
		need.parts = append(need.parts, fmt.Sprintf("a RAM disk for the largest store takes about %s, and %s are "+
			"left for everything else", words.Bytes(disk), words.Bytes(testbed.RAMReserve)))
	}
	for _, use := range cfg.Plan.Experiment.Systems {
		sys, n := findSystem(cfg.Systems, use.Use), at.nodes(use)
		if sys == nil || use.Attached() || n == 0 {
			continue
		}
		each := sys.Info().NodeMemory
		if each == 0 {
			need.unknown = append(need.unknown, use.Name)
			continue
		}
		bytes := float64(n) * float64(each)
		need.bytes += bytes
		need.parts = append(need.parts, fmt.Sprintf("%d nodes of %s take about %s", n, use.Name, words.Bytes(bytes)))
	}
	return need
}

// over is the problem when the need is more than is free.
func (m memoryNeed) over(free float64) []Problem {
	if m.bytes <= free {
		return nil
	}
	what := strings.Join(m.parts, ", ")
	if len(m.parts) > 1 {
		what += fmt.Sprintf(", together %s", words.Bytes(m.bytes))
	}
	if len(m.unknown) > 0 {
		what += fmt.Sprintf(" (not counted: %s)", strings.Join(m.unknown, ", "))
	}
	return []Problem{refuse(fmt.Sprintf("%s; %s of memory are available", what, words.Bytes(free)),
		"fewer nodes (disseminate.nodes, sync.peers), a shorter chain or storage: disk, or fewer systems at a time, "+
			"or skip: [memory]")}
}
