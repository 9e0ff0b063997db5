package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// site is one system of the plan, deployed and prepared.
type site struct {
	use   experiment.SystemUse
	sys   system.System
	hosts []testbed.Host // one for each node of its largest cell; none when attached
	// hosts of the load generator's processes; the first is the client's, which all share on one machine
	generators []testbed.Host
	network    *network // the links of its nodes; nil: its nodes have no links of their own
	dir        string
	cluster    system.Cluster
	runner     scenario.Runner
	watched    map[string]bool                      // sample names of attached servers on this machine
	revivable  bool                                 // its directory outlives this session, so the next can continue
	used       bool                                 // a trial that continues has been executed on it
	changed    string                               // how it differs from the previous session
	started    map[testbed.ProcessID]testbed.Memory // memory of its processes before anything was stored
}

// deployAll brings up every system of the plan, each on its own host. They stay up between
// trials, so that trials can be interleaved, and only one is loaded at a time.
func (r *run) deployAll(ctx context.Context) error {
	r.sites = map[string]*site{}
	for _, use := range r.plan.Experiment.Systems {
		sys := findSystem(r.cfg.Systems, use.Use)
		if sys == nil {
			return fmt.Errorf("engine: there is no system %q", use.Use)
		}
		cells, client := r.plan.CellsOf(use.Name), r.outside
		s := &site{use: use, sys: sys, revivable: r.cfg.revives(use) && r.cfg.continues()}
		r.sites[use.Name] = s
		if !use.Attached() {
			client = r.client
			for _, name := range hostNames(use.Name, cells) {
				host, err := r.bed.AddHost(ctx, name)
				if err != nil {
					return err
				}
				s.hosts = append(s.hosts, host)
			}
			if nodes(cells) > 0 {
				s.network = &network{r: r, s: s}
			}
		}
		if s.generators = append([]testbed.Host{client}, r.generators...); r.cfg.Machines == 0 {
			s.generators = slices.Repeat(s.generators, r.clients())
		}
	}
	hosts := map[string][]testbed.Host{}
	for name, s := range r.sites {
		hosts[name] = s.hosts
	}
	if err := checkHosts(ctx, r.cfg, hosts); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	continued := map[string]bool{} // systems with an interrupted trial that will be continued on its deployment
	for key := range r.interrupted {
		cell, _ := r.cellAndUse(key.cell)
		continued[cell.System] = true
	}
	for _, use := range r.plan.Experiment.Systems {
		if err := r.deploy(ctx, r.sites[use.Name], continued[use.Name]); err != nil {
			hint := "see `with:` of the system in the experiment file, and its log in " +
				filepath.Join(r.cfg.Dir, record.LogsDir)
			if use.Attached() {
				hint = attachHint
			}
			return ui.Exit(ui.CodePreconditions, ui.WithHint(err, cmp.Or(ui.Hint(err), hint)))
		}
	}
	return nil
}

// place creates the directory of a deployment, or finds that of a deployment to revive.
func (r *run) place(s *site, revive bool) (err error) {
	if !s.revivable {
		s.dir, err = os.MkdirTemp(r.scratch, filepath.Base(s.use.Name)+"-")
	} else if s.dir, err = filepath.Abs(r.cfg.nodesDir(s.use.Name)); err == nil {
		if !revive {
			err = s.remove(s.dir)
		}
		err = errors.Join(err, os.MkdirAll(s.dir, 0o700))
	}
	if err != nil {
		return fmt.Errorf("engine: directory of %s: %w", s.use.Name, err)
	}
	return nil
}

// deploy brings up one system and prepares it for its cells. It also restarts a system that
// died: with a fresh directory and newly stored data or, if a trial continues and the system
// can be revived, on the trial's data.
func (r *run) deploy(ctx context.Context, s *site, continuing bool) error {
	name, cells := s.use.Name, r.plan.CellsOf(s.use.Name)
	revive := continuing && s.revivable
	if err := r.place(s, revive); err != nil {
		return err
	}
	d := system.Deployment{
		Client: s.generators[0], Hosts: s.hosts, Dir: s.dir, Options: system.Options(maps.Clone(s.use.With)),
		Self: r.bed.Self(), Write: r.plan.Experiment.Allows("write"), Swarm: r.plan.Experiment.Disseminate != nil,
		Follow: r.plan.Experiment.Sync != nil, Cache: r.cache,
	}
	if r.cfg.continues() {
		d.Run = r.rec.ID()
	}
	begun := time.Now()
	limit := r.plan.Experiment.Limits.Start.Std()
	starting, cancel := context.WithTimeoutCause(ctx, limit+startMargin,
		fmt.Errorf("%s was not ready within %s (limits.start)", name, words.Duration(limit)))
	defer cancel()
	var err error
	switch {
	case s.attached():
		r.say.Phase("attaching to " + name)
		s.cluster, err = system.Begin(starting, s.sys, system.Attach, d)
	case revive:
		r.say.Phase("starting " + name + " again on its data")
		s.cluster, err = system.RestartDeployment(starting, s.sys, d)
	default:
		r.say.Phase("starting " + name)
		s.cluster, err = system.Begin(starting, s.sys, system.Start, d)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if s.attached() {
		r.watch(starting, s)
	}
	r.event("phase", "system ready", name, time.Since(begun))
	s.used = revive
	s.started = map[testbed.ProcessID]testbed.Memory{}
	for _, p := range s.processes() {
		s.started[p.ID()] = p.Memory()
	}
	r.noteChange(s)
	if err := r.awaitNeeds(ctx, s, continuing); err != nil {
		return err
	}
	r.say.Phase("preparing the data of " + name)
	limit = r.prepareTime(s)
	if s.attached() && r.plan.Experiment.Retrieve != nil {
		limit += copiesTime
	}
	preparing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at := scenario.Site{
		Use: s.use, Cluster: s.cluster, Client: s.generators[0], Generators: s.generators, Self: r.bed.Self(),
		Dir: s.dir, Seed: r.dataSeed(s, begun), Run: r.rec.ID(), Base: r.cfg.Base,
		Limits: r.plan.Experiment.Limits, Event: r.event, Say: r.say.Note,
		Store: func(_ context.Context, memory int64) (scenario.StoreDir, error) {
			return r.storeOn(s.hosts[0], memory)
		},
	}
	if s.network != nil {
		at.Network = s.network
	}
	s.runner, err = scenario.Prepare(preparing, r.cfg.Scenario, s.sys.Info(), at, cells)
	return err
}

// storeOn creates a directory for a store on a host: on disk or, if size is above 0, in memory.
func (r *run) storeOn(h testbed.Host, size int64) (scenario.StoreDir, error) {
	files := h.Files()
	if size > 0 {
		d, err := h.Machine().RAMDisk("store", size)
		return scenario.StoreDir{Files: files, Path: d.Path, Remove: d.Remove}, err
	}
	dir := filepath.Join(r.scratch, "store-"+rand.Text())
	err := files.MkdirAll(dir, 0o700)
	if err != nil {
		return scenario.StoreDir{}, fmt.Errorf("engine: directory of a store: %w", err)
	}
	return scenario.StoreDir{Files: files, Path: dir, Remove: func() error { return files.RemoveAll(dir) }}, nil
}

// awaitNeeds waits until a system has what its load test needs.
func (r *run) awaitNeeds(ctx context.Context, s *site, continuing bool) error {
	upload := r.plan.Experiment.Upload
	if upload == nil {
		return nil
	}
	begun := time.Now()
	return waiter{
		name: s.use.Name, node: s.cluster.Nodes()[0], need: upload.Need, skip: r.plan.Experiment.Skip,
		say: func(what string) {
			r.say.Phase(s.use.Name + ": " + what)
			r.event("phase", "preconditions", s.use.Name+": "+what, time.Since(begun))
		},
	}.ready(ctx, continuing)
}

// watch observes those servers of an attached system that are on this machine.
func (r *run) watch(ctx context.Context, s *site) {
	s.watched = map[string]bool{}
	for _, n := range s.cluster.Nodes() {
		e, ok := n.(system.Endpointer)
		if !ok {
			continue
		}
		for _, address := range e.Endpoints() {
			name := s.use.Name + "@" + address
			switch ok, err := r.bed.Watch(ctx, name, address); {
			case err != nil:
				r.event("note", "server not observed", err.Error(), 0)
			case ok:
				s.watched[name] = true
				r.event("phase", "server observed", address+" is on this machine", 0)
				note := fmt.Sprintf("%s: %s is on this machine: the server shares its CPUs with the load generator; run "+
					"it from another machine", s.use.Name, address)
				if limits := r.plan.Experiment.Limits; limits.Others > 0 || limits.Machine > 0 {
					note += ", or count trials that are only box-busy or machine-limited: " +
						"--set limits.others=none --set limits.machine=none"
				}
				r.say.Note(note)
			}
		}
	}
}

// dataSeed returns the seed of a system's data. An attached system outlives the run, so names
// and contents must differ from those of earlier runs and of earlier sessions of this run.
func (r *run) dataSeed(s *site, now time.Time) uint64 {
	seed := r.plan.Experiment.Seed
	switch {
	case !s.attached():
		return seed
	case r.cfg.continues(): // a trial that continues must find what its earlier sessions stored
		return seedOf("%d/attached/%s", seed, r.rec.ID())
	}
	seed = seedOf("%d/attached/%d", seed, now.UnixNano())
	r.event("note", "seed of its data", fmt.Sprintf("%s: %d", s.use.Name, seed), 0)
	return seed
}

// startMargin is how long starting a system may take beyond the experiment's start limit,
// which systems apply themselves, with better errors.
const startMargin = 30 * time.Second

// copiesTime is the time for copies of an attached server's own objects, of which each has
// limits of its own.
const copiesTime = 24 * time.Hour

// prepareTime returns how long storing a system's data may take: a second per object plus
// 1 MB/s, which even the slowest supported system exceeds several times, plus the deadline
// of one operation for a wait that fails, such as for objects to become durable.
func (r *run) prepareTime(s *site) time.Duration {
	cells, limits := r.plan.CellsOf(s.use.Name), r.plan.Experiment.Limits
	took := limits.Deadline.Std() + 30*time.Second
	switch {
	case r.cfg.continues(): // it stores nothing before its trials, but may have to wait
		if u := r.plan.Experiment.Upload; u != nil {
			took += u.Need.Wait.Std()
		}
	case r.plan.Experiment.Sync != nil:
		for _, c := range cells { // as if each had its own chain
			took += chainTime(c, limits)
		}
	default:
		objects, bytes := r.cfg.Scenario.Prepares(cells)
		took += time.Duration((float64(objects) + float64(bytes)/1e6) * float64(time.Second))
	}
	return took
}

// clear removes from attached systems what the run has stored there, and reports what
// remains. It may be called when any part of the run is missing.
func (r *run) clear(ctx context.Context) {
	for name, s := range r.sites {
		stored, ok := s.runner.(scenario.Closer)
		if !ok {
			continue
		}
		if s.attached() && r.plan.Experiment.Allows("write") {
			r.say.Phase("removing from " + name + " what was stored there")
		}
		begun := time.Now()
		closing, cancel := context.WithTimeout(ctx, removeTime)
		err := stored.Close(closing)
		cancel()
		if err != nil {
			r.event("note", "objects not removed", name+": "+err.Error(), time.Since(begun))
			r.say.Note(fmt.Sprintf("%s: %v", name, err))
		}
	}
}

// attached reports whether the system runs elsewhere.
func (s *site) attached() bool { return len(s.hosts) == 0 }

// stopSite stops a system and removes its data.
func (r *run) stopSite(ctx context.Context, s *site) error {
	var errs []error
	if s.cluster != nil {
		if err := s.cluster.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: stop: %w", s.use.Name, err))
		}
		s.cluster, s.runner = nil, nil
	}
	if s.dir != "" && (!s.revivable || r.over) {
		errs = append(errs, s.remove(s.dir))
	}
	s.dir = ""
	return errors.Join(errs...)
}

// remove removes a directory of the deployment, here and on its hosts.
func (s *site) remove(dir string) error {
	err := os.RemoveAll(dir)
	for _, h := range s.hosts {
		failed := h.Files().RemoveAll(dir)
		if gone, _ := lostHost([]testbed.Host{h}); gone == nil { // a lost machine's files are removed with its place
			err = errors.Join(err, failed)
		}
	}
	return err
}

// processes returns the processes of a deployment that we can observe.
func (s *site) processes() []testbed.Process {
	if s.cluster == nil {
		return nil
	}
	var all []testbed.Process
	for _, n := range s.cluster.Nodes() {
		all = append(all, n.Processes()...)
	}
	return all
}

// all returns the hosts that the system's trials depend on.
func (s *site) all() []testbed.Host { return slices.Concat(s.generators, s.hosts) }

// machines returns the machines that the system's trials depend on: first ours, then those of
// other load generators and of its hosts.
func (s *site) machines() []testbed.Machine {
	all := []testbed.Machine{testbed.Here()}
	for _, h := range testbed.OnePerMachine(s.all()) {
		if m := h.Machine(); m.Name() != "" {
			all = append(all, m)
		}
	}
	return all
}

// died returns the first process of the deployment that has ended.
func (s *site) died() testbed.Process {
	all := s.processes()
	if i := slices.IndexFunc(all, testbed.Ended); i >= 0 {
		return all[i]
	}
	return nil
}

// Catalog returns what an experiment file may say about systems.
func Catalog(all []system.System) experiment.Catalog {
	var c experiment.Catalog
	for _, s := range all {
		info := s.Info()
		c = append(c, experiment.SystemSpec{Name: info.Name, Baseline: info.Baseline, Modes: info.Modes, Can: info.Can,
			Options: info.Options})
	}
	return c
}

func findSystem(all []system.System, name string) system.System {
	for _, s := range all {
		if s.Info().Name == name {
			return s
		}
	}
	return nil
}

// infoOf returns the description of the system of a use; empty if there is no such system.
func infoOf(all []system.System, use experiment.SystemUse) (info system.Info) {
	if s := findSystem(all, use.Use); s != nil {
		info = s.Info()
	}
	return info
}
