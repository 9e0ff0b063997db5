package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// continues reports whether interrupted trials are continued by the next session instead of
// starting over.
func (c Config) continues() bool { return c.Plan.Experiment.LoadTest() }

// revives reports whether a deployment of a system can be started again on its data.
func (c Config) revives(use experiment.SystemUse) bool {
	return !use.Attached() && infoOf(c.Systems, use).Kept != ""
}

// nodesDir is the directory of a deployment that outlives a session: it is in the run
// directory, because the scratch directory is removed with the process.
func (c Config) nodesDir(name string) string { return filepath.Join(c.Dir, "nodes", name) }

// readEarlier reads what earlier sessions of the run have executed.
func (r *run) readEarlier() error {
	r.done, r.interrupted = map[trialKey]record.Trial{}, map[trialKey]record.Trial{}
	trials, err := r.rec.Trials()
	if err != nil {
		return err
	}
	analysis.Judge(r.plan, trials)
	for _, t := range trials {
		key := trialKey{t.Cell, t.Block}
		switch t.State {
		case record.Done, record.Skipped:
			r.done[key] = t
			again := r.cfg.RetryInvalid && t.State == record.Done && !t.Warmup && !t.Valid()
			if again && r.cfg.continues() {
				return &scenario.PreconditionError{Problems: []Problem{refuse(
					"a load test is not executed again: its objects are stored", "start a new run")}}
			}
			if again { // its record stays; of the trials of a cell and block the newest counts
				delete(r.done, key)
			}
		case record.Pending, record.Failed: // to be executed again
			delete(r.done, key)
		case record.Running:
			r.interrupted[key] = t
			continue // its bytes are counted when it ends
		}
		r.bytes += t.Bytes
	}
	events, err := r.rec.Events()
	if err != nil {
		return err
	}
	if r.cfg.Resume {
		r.cfg.Base = r.rec.Reader.Meta()[baseKey]
	}
	r.earlier, r.lastSeen = earlierSeconds(events, trials)
	r.identities = map[string]map[string]string{}
	_ = json.Unmarshal([]byte(r.rec.Reader.Meta()["systems"]), &r.identities) // a session that failed early left none
	return nil
}

// baseKey is the key of Config.Base in the record.
const baseKey = "base"

// earlierStop returns the recorded exit condition that ended an earlier session; nil: none.
func (r *run) earlierStop() *scenario.Stop {
	text, ok := strings.CutPrefix(r.rec.Reader.Meta()["stopped"], "stopped by ")
	condition, why, cut := strings.Cut(text, ": ")
	if !ok || !cut {
		return nil
	}
	return &scenario.Stop{Condition: condition, Why: why}
}

// canContinue reports whether an interrupted trial is continued. Trials that cannot be continued are
// added to startedOver with the reason.
func (r *run) canContinue(t record.Trial) bool {
	_, use := r.cellAndUse(t.Cell)
	if t.State != record.Running || !r.cfg.continues() {
		return false
	}
	if use.Attached() {
		return true
	}
	why := "it cannot be brought up again with its data"
	if r.cfg.revives(use) {
		_, err := os.Stat(r.cfg.nodesDir(use.Name))
		if err == nil {
			return true
		}
		why = fmt.Sprintf("its data is gone (%v)", err)
	}
	r.startedOver = append(r.startedOver, use.Name+": "+why+", so its trial begins anew, with a fresh deployment")
	return false
}

// cellAndUse returns the cell of a recorded trial and its system; empty if a damaged record names a cell that is
// not in the plan.
func (r *run) cellAndUse(id string) (cell experiment.Cell, use experiment.SystemUse) {
	if i := slices.IndexFunc(r.plan.Cells, func(c experiment.Cell) bool { return c.ID == id }); i >= 0 {
		cell = r.plan.Cells[i]
		use = r.plan.Experiment.System(cell.System)
	}
	return cell, use
}

// continued returns the epoch of a continued trial, from which time goes on monotonically, never earlier than
// the records of earlier sessions: it is at the wall-clock time since the recorded epoch or, if the wall clock was
// set back, at the last recorded time.
func continued(epoch, now time.Time, last time.Duration) time.Time {
	passed := now.Round(0).Sub(epoch) // by the wall clock: an earlier process had another monotonic clock
	return now.Add(-max(passed, last))
}

// The events with which a session begins.
const (
	runBegins  = "run begins"
	runResumed = "run resumed"
)

// earlierSeconds returns how long the earlier sessions of a run lasted in total, and the last known
// time: each session lasts from its first event to the last known event or end of a trial's load,
// because a killed session leaves no final event.
func earlierSeconds(events []record.Event, trials []record.Trial) (sum float64, last time.Time) {
	type moment struct {
		at     time.Time
		begins bool // a session; nothing ran before
	}
	var all []moment
	for _, e := range events {
		all = append(all, moment{e.At, e.Kind == "phase" && (e.What == runBegins || e.What == runResumed)})
	}
	for _, t := range trials {
		all = append(all, moment{t.Epoch.Add(time.Duration(t.Seconds * float64(time.Second))), false})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	for i, m := range all {
		if i > 0 && !m.begins {
			sum += m.at.Sub(last).Seconds()
		}
		last = m.at
	}
	return sum, last
}

// metaClients is the key of the number of load generator processes.
const metaClients = "clients"

// recordEnvironment records what is needed to judge the run: the machine, the testbed, the
// identity of every system, and the numbers in its code that affect results and cannot be
// set.
func (r *run) recordEnvironment() error {
	systems, constants := map[string]map[string]string{}, map[string][]system.Constant{}
	for name, s := range r.sites {
		systems[name] = r.identities[name]
		if s.cluster != nil { // nil: it could not be restarted
			systems[name] = identityOf(s.cluster)
		}
		if fixed := s.sys.Info().Constants; len(fixed) > 0 {
			constants[name] = fixed
		}
	}
	environment := r.bed.Environment()
	maps.Copy(environment, r.cfg.Where)
	all := map[string]any{"environment": environment, "testbed": r.bed.Mode(), "systems": systems}
	if n := r.clients(); n > 1 {
		all[metaClients] = n
	}
	if r.cache != "" {
		all["chains"] = r.cache
	}
	if len(constants) > 0 {
		all["constants"] = constants
	}
	for key, v := range all {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("engine: record %s: %w", key, err)
		}
		if err := r.rec.Meta(key, string(b)); err != nil {
			return err
		}
	}
	return nil
}

// identityOf returns the identity of a cluster, with the container images of its programs.
func identityOf(c system.Cluster) map[string]string {
	id := c.Identity()
	all := maps.Clone(id)
	for key, program := range id {
		i, _, ok := image.Of(program)
		switch {
		case ok && key == "binary":
			all[system.ImageName] = i.String()
		case ok:
			all[key+"_"+system.ImageName] = i.String()
		}
	}
	return all
}

// noteChange reports how a system differs from the previous session, for example because a
// daemon was upgraded. Endpoints of deployments always differ.
func (r *run) noteChange(s *site) {
	before, now := r.identities[s.use.Name], identityOf(s.cluster)
	r.identities[s.use.Name] = now
	if before == nil {
		return
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(before)) { // a new key may just be new in Plimsoll
		if a, b := before[key], now[key]; a != b && key != "endpoint" {
			changes = append(changes, fmt.Sprintf("%s: %q, was %q", key, b, a))
		}
	}
	if len(changes) > 0 { // otherwise keep an earlier change of this session
		s.changed = strings.Join(changes, "; ")
		r.event("note", "system changed", s.use.Name+": "+s.changed, 0)
		r.say.Note(s.use.Name + " is not what it was when the trial began: " + s.changed)
	}
}
