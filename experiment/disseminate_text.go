package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// text is the swarm in words; compared says that there is a baseline.
func (s *Disseminate) text(compared bool) string {
	parts := []string{"nodes " + numbers(s.Nodes), "seeders " + numbers(s.Seeders)}
	switch s.SeederSets {
	case 0:
		parts[1] += ", others in each repetition"
	case 1:
		parts[1] += ", always the same"
	default:
		parts[1] += fmt.Sprintf(", %d sets of them in turn", s.SeederSets)
	}
	if len(s.Up) > 1 || s.Up.One() != 0 {
		parts = append(parts, "up "+levelsOr(s.Up, "link"))
	}
	if len(s.Slow) > 1 || s.Slow.One() != 0 {
		slow := levels(s.Slow) + " of the leechers slow:"
		if s.SlowUp != 0 {
			slow += " up " + s.SlowUp.String()
		}
		if s.SlowDown != 0 {
			slow += " down " + s.SlowDown.String()
		}
		parts = append(parts, slow)
	}
	parts = append(parts, "join "+strings.Join(s.Join, " / "), "stay "+strings.Join(s.Stay, " / "), "faults "+faultLevels(s.Faults))
	if s.Fresh {
		parts = append(parts, "nodes started anew for each trial")
	} else {
		parts = append(parts, "nodes live through all trials")
	}
	parts = append(parts, s.Cache+" cache")
	if s.Poll == 0 {
		parts = append(parts, "polls auto")
	} else {
		parts = append(parts, "a poll every "+s.Poll.String())
	}
	if compared && s.Gate > 0 {
		parts = append(parts, "goal: at most "+s.Gate.String()+" longer than the baseline")
	}
	return strings.Join(parts, "; ")
}

// faultLevels are the levels of faults, in quotes where one of them is several
// faults.
func faultLevels(levels Axis[string]) string {
	texts := slices.Clone(levels)
	for i, text := range texts {
		if strings.Contains(text, ";") {
			texts[i] = "`" + text + "`"
		}
	}
	return strings.Join(texts, " / ")
}

// swarmText is what swarms ask of the machine: the nodes of all systems are up
// through all trials, and the content of one trial is removed before the next.
func (p *Plan) swarmText() string {
	var each []string
	nodes, disk := 0, 0.0
	for _, s := range p.Experiment.Systems {
		n := p.largestSwarm(s.Name)
		each = append(each, fmt.Sprintf("%d of %s", n, s.Name))
		nodes += n
	}
	for _, c := range p.Cells {
		disk = max(disk, float64(c.Disseminate.Nodes)*float64(c.Data.Size))
	}
	text := plural(nodes, "node")
	if len(each) > 1 {
		text += " (" + strings.Join(each, ", ") + ") in memory at the same time"
	}
	return fmt.Sprintf("%s, each a process behind a link of its own; %s on disk when all of a trial have everything", text, RoughBytes(disk))
}

// lateFaults says that some faults may never come.
func (p *Plan) lateFaults() string {
	var late []string
	for _, c := range p.Cells {
		if c.Disseminate == nil {
			continue
		}
		for _, f := range faultsOf(c.Disseminate.Faults) {
			if c.tooLate(f, c.Estimate.Operation) {
				late = append(late, c.ID)
				break
			}
		}
	}
	if len(late) == 0 {
		return ""
	}
	return fmt.Sprintf("in %s (%s) a fault begins when all leechers are expected to be done: then the trial is over, and the fault never happens; let it begin earlier, or at a share such as 50%%", plural(len(late), "cell"), few(late, 6))
}

// oneByOne says that leechers come so seldom that no two are there at once.
func (p *Plan) oneByOne() string {
	var seldom []string
	for _, c := range p.Cells {
		if c.Disseminate == nil {
			continue
		}
		j, err := ParseJoin(c.Disseminate.Join)
		gap := j.Every.Seconds()
		if j.Rate > 0 {
			gap = 1 / j.Rate
		}
		if err == nil && gap > p.Experiment.Limits.Deadline.Seconds() {
			seldom = append(seldom, c.ID)
		}
	}
	if len(seldom) == 0 {
		return ""
	}
	return fmt.Sprintf("in %s (%s) leechers come further apart than their deadline of %s: each is done or given up before the next comes; let them come faster (disseminate.join)", plural(len(seldom), "cell"), few(seldom, 6), p.Experiment.Limits.Deadline)
}

// uneven says that some choices of the seeders count more often than others.
func (p *Plan) uneven() string {
	s, r := p.Experiment.Disseminate, p.Experiment.Repetitions
	if s == nil || s.SeederSets == 0 || r.Min != r.Max || r.Max%s.SeederSets == 0 {
		return ""
	}
	return fmt.Sprintf("%s do not divide into %d seeder sets: some sets count once more than others; repeat a multiple of %d times, or change disseminate.seeder_sets", plural(r.Max, "repetition"), s.SeederSets, s.SeederSets)
}

// impatient warns of systems that try a lost peer again later than limits.stall.
func (p *Plan) impatient() (warnings []string) {
	if !slices.ContainsFunc(p.Cells, func(c Cell) bool { return c.Disseminate != nil && strings.Contains(c.Disseminate.Faults, " for ") }) {
		return nil
	}
	stall := p.Experiment.Limits.Stall
	for _, s := range p.Experiment.Systems {
		if after, err := time.ParseDuration(s.With["reconnect"]); err == nil && after > stall.Std() {
			warnings = append(warnings, fmt.Sprintf("%s tries a lost peer again after %s (its option reconnect), and limits.stall is %s: leechers may be called stalled, though they would go on after a fault; raise limits.stall", s.Name, Duration(after), stall))
		}
	}
	return warnings
}
