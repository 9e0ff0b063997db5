package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// unreadableNamed is how many files are named that cannot be read.
const unreadableNamed = 5

// checkData opens every file of the data sets that are read from this machine:
// one that cannot be read should not be found out after a week.
func checkData(ctx context.Context, cfg Config) []Problem {
	var all []Problem
	seen := map[string]bool{}
	if a := cfg.Plan.Experiment.Retrieve.Replays(); a != nil {
		again := &experiment.Experiment{Retrieve: &experiment.Retrieve{
			Arrivals: &experiment.Arrivals{Process: a.Process, Log: a.Log}}}
		if err := scenario.FindRequestLog(again, cfg.Base); err != nil {
			all = append(all,
				refuse(err.Error(), "relative paths start at "+cfg.Base+", the directory of the experiment file"))
		} else if is := again.Retrieve.Arrivals.Found.SHA256; a.Found == nil || a.Found.SHA256 != is {
			all = append(all, refuse("the log "+a.Log+" is not the one of the plan: its SHA-256 is "+is,
				"put the file back, or begin a new run"))
		}
	}
	for _, c := range cfg.Plan.Cells {
		if c.Data.Known() || seen[c.Data.Key()] {
			continue
		}
		seen[c.Data.Key()] = true
		hint := ""
		set, err := scenario.DataSet(ctx, c.Data, cfg.Plan.Experiment.Seed, cfg.Base)
		if err != nil {
			// Where a relative path starts is worth saying of one that is not there.
			if path := c.Data.Directory + c.Data.Trace; errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path) {
				hint = "relative paths start at " + cfg.Base + ", the directory of the experiment file"
			}
			all = append(all, refuse(err.Error(), hint))
			continue
		}
		var unreadable []string
		bad := 0
		for i := range set.Len() / max(1, c.Data.Copies) { // copies are read from the same files
			if ctx.Err() != nil {
				return all
			}
			f, err := set.Open(i)
			if err == nil {
				f.Close()
				continue
			}
			if bad++; len(unreadable) < unreadableNamed {
				unreadable = append(unreadable, err.Error())
			}
		}
		if bad > 0 {
			all = append(all, refuse(fmt.Sprintf("%d of %d files of the data set cannot be read, the first: %s", bad,
				set.Len()/max(1, c.Data.Copies), strings.Join(unreadable, "; ")),
				"make them readable, or say skip: [data-readable] to store the others"))
		}
	}
	return all
}
