package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/validity"
)

// calibration is what swarms cost a machine, by its CPUs and the kind of system: the
// seconds of the machine line for each GB (10^9 bytes) delivered to leechers.
type calibration map[string]map[string]float64

const calibrationFile = "calibration.json"

// readCalibration reads what earlier runs have saved; empty where there is nothing to read.
func readCalibration() (calibration, error) {
	path, err := testbed.CacheDir(calibrationFile)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return calibration{}, nil
	}
	if err != nil {
		return nil, err
	}
	all := calibration{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it", path, err)
	}
	return all, nil
}

// saveCalibration replaces, in what earlier runs have saved, the systems of this run.
func saveCalibration(systems map[string]float64) error {
	all, err := readCalibration()
	if err != nil {
		return err
	}
	cpus := testbed.CPUs()
	if all[cpus] == nil {
		all[cpus] = map[string]float64{}
	}
	for name, v := range systems {
		all[cpus][name] = v
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	path, err := testbed.CacheDir(calibrationFile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// calibrate saves what the swarms of a run cost this machine, for the next plan.
func calibrate(plan *experiment.Plan, trials []record.Trial) error {
	validity.Judge(plan, trials)
	cells, kinds := map[string]experiment.Cell{}, map[string]string{}
	for _, use := range swarms(plan) {
		for _, c := range cellsOf(plan, use.Name) {
			cells[c.ID], kinds[c.ID] = c, use.Use
		}
	}
	costs := map[string][]float64{}
	for _, t := range trials {
		c, ok := cells[t.Cell]
		if !ok || t.Warmup || t.State != record.Done || slices.Contains(t.Notes, record.NoteNotEmulated) ||
			slices.ContainsFunc(t.Invalid, func(why string) bool { return why != record.ReasonMachineLimited }) {
			continue
		}
		_, all := t.Metrics["time_last"] // every leecher has the content
		seconds := validity.MachineShare(t) * t.Seconds
		if all && seconds > 0 && delivered(&c) >= leastCalibrated {
			costs[kinds[c.ID]] = append(costs[kinds[c.ID]], seconds/delivered(&c))
		}
	}
	systems := map[string]float64{}
	for name, all := range costs {
		systems[name] = stats.Median(all)
	}
	if len(systems) == 0 {
		return nil
	}
	return saveCalibration(systems)
}

// leastCalibrated is how many GB a trial must deliver to say what one costs: of less,
// what nodes do whether they transfer or not is too large a part.
const leastCalibrated = 0.05

// delivered is how many GB all leechers of a cell receive of the content.
func delivered(c *experiment.Cell) float64 {
	return float64(c.Disseminate.Leechers()) * float64(c.Data.Size) / 1e9
}

// checkMachineLine warns of cells in which this machine, and not the links, would be the
// limit, as far as earlier runs tell.
func checkMachineLine(_ context.Context, cfg Config) []Problem {
	known, err := readCalibration()
	if err != nil {
		return []Problem{{What: fmt.Sprintf("the machine line is not known: %v", err)}}
	}
	var all []Problem
	limit := float64(cfg.Plan.Experiment.Limits.Machine)
	for _, use := range swarms(cfg.Plan) {
		cost, ok := known[testbed.CPUs()][use.Use]
		if !ok || limit == 0 {
			continue
		}
		var slow []string
		cells := cellsOf(cfg.Plan, use.Name)
		for i := range cells {
			c := &cells[i]
			if line := c.LinkSeconds(use.Alone); line > 0 && cost*delivered(c) >= limit*line {
				slow = append(slow, c.ID)
			}
		}
		if len(slow) > 0 {
			const most = 6
			names := strings.Join(slow[:min(most, len(slow))], ", ")
			if len(slow) > most {
				names += ", …"
			}
			all = append(all, Problem{
				What: fmt.Sprintf("%s: this machine is expected to be the limit in %d of %d cells (%s), whose trials would be "+
					"invalid (machine-limited): earlier runs took %.3g s of its CPUs per GB delivered",
					use.Name, len(slow), len(cells), names, cost),
				Hint: "lower link.rate or disseminate.nodes, or use a machine with more CPUs",
			})
		}
	}
	return all
}

// machineLine is the name of the precondition.
const machineLine = "machine-line"

// swarms are the systems of a plan that are started here to spread content.
func swarms(plan *experiment.Plan) (all []experiment.SystemUse) {
	if plan.Experiment.Disseminate == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(plan.Experiment.Systems),
		func(s experiment.SystemUse) bool { return s.Mode == string(system.Attach) })
}
