package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/remote/kubernetes"
	"github.com/plimsoll-project/plimsoll/remote/ssh"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/scenario"
	scenarios "github.com/plimsoll-project/plimsoll/scenario/all"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

func (p *program) runCommand() *cobra.Command {
	var set []string
	var out string
	var options runOptions
	c := verb("run PRESET|FILE", exactly(1, "one preset or experiment file"), func(c *cobra.Command, args []string) error {
		cfg, name, err := p.load(args[0], set)
		if err != nil {
			return err
		}
		return p.perform(c, options, name, out, cfg)
	})
	setFlag(c, &set)
	outFlag(c, &out, "NAME")
	options.flags(c)
	options.runFlags(c)
	options.place.flags(c)
	return c
}

// outFlag adds --out, which defaults to a directory with a name, date and time.
func outFlag(c *cobra.Command, out *string, name string) {
	c.Flags().StringVar(out, "out", "", "run directory (default runs/"+name+"-DATE-TIME)")
}

func outOr(out, name string) string {
	return cmp.Or(out, filepath.Join("runs", name+"-"+time.Now().Format("20060102-150405")))
}

// runOptions are how a run is executed and displayed, which is not part of its plan.
type runOptions struct {
	waitQuiet   time.Duration
	keepGoing   bool
	pull        bool
	open, serve bool
	clients     int
	place       place
}

const waitQuiet = "wait-quiet"

func (m *runOptions) flags(c *cobra.Command) {
	c.Flags().DurationVar(&m.waitQuiet, waitQuiet, 0, "wait at most this long for other processes' "+
		"CPU use to fall below limits.others (default 1m on a terminal, else 0)")
	c.Flags().BoolVar(&m.keepGoing, "keep-going", false, "continue although no trial of the first block is valid")
	c.Flags().BoolVar(&m.pull, "pull", false, "pull missing container images without asking")
}

func (m *runOptions) runFlags(c *cobra.Command) {
	c.Flags().IntVar(&m.clients, "clients", 1, "divide the load generator of retrieve among this many processes")
	c.Flags().BoolVar(&m.open, "open", false, "open the page in the browser: the live one with --serve, else at the end")
	c.Flags().BoolVar(&m.serve, "serve", false, "serve the page live on loopback while it runs, as plimsoll serve does")
}

func (p *program) resumeCommand() *cobra.Command {
	var options runOptions
	var retryInvalid bool
	c := verb("resume DIR", exactly(1, "one run directory"), func(c *cobra.Command, args []string) error {
		where, err := remote.ReadWhere(args[0])
		if err != nil {
			return err
		}
		on := &options.place
		if where != nil && on.On == "" && (!where.Over || where.Run != "" || retryInvalid) {
			on.On, on.Image, on.Pack = where.On, cmp.Or(on.Image, where.Image), on.Pack || where.Pack
		}
		src, err := os.ReadFile(filepath.Join(args[0], "plan.json")) // of a run elsewhere all there is here
		if err != nil {
			_, err = openRun(args[0]) // says what is wrong
			return err
		}
		plan, err := experiment.LoadPlan(src)
		if err != nil {
			return ui.Exit(ui.CodeUsage, fmt.Errorf("%s: %w", args[0], err))
		}
		if plan.Imported != nil {
			return ui.Exit(ui.CodeUsage, fmt.Errorf("%s was imported (%s): there is nothing to continue", args[0],
				plan.Imported.Format))
		}
		return p.perform(c, options, "", args[0], engine.Config{Plan: plan, Resume: true,
			RetryInvalid: retryInvalid})
	})
	c.Flags().BoolVar(&retryInvalid, "retry-invalid", false, "run invalid trials again; their records stay")
	options.flags(c)
	options.place.flags(c)
	return c
}

// perform executes a plan in a run directory (a new one if out is empty), and shows its page if
// requested.
func (p *program) perform(c *cobra.Command, m runOptions, name, out string, cfg engine.Config) error {
	if out == "" {
		out = outOr("", name)
		end := slices.Index(os.Args, "--") // of the flags
		if end < 0 {
			end = len(os.Args)
		}
		os.Args = slices.Insert(os.Args, end, "--out", out) // the command may run again in namespaces
	}
	cfg.Dir, cfg.WaitQuiet, cfg.StopInvalid, cfg.Clients = out, m.waitQuiet, !m.keepGoing, m.clients
	if !c.Flags().Changed(waitQuiet) && p.ui.Terminal() {
		cfg.WaitQuiet = time.Minute
	}
	e := cfg.Plan.Experiment
	if undivided := e.Retrieve == nil || e.Retrieve.Mix != nil; m.clients < 0 || m.clients > 1 && undivided {
		return usage(fmt.Errorf("--clients %d: the load of %s cannot be divided so", m.clients, e.Scenario),
			"it divides the load generator of the scenario retrieve, without mix, among that many processes")
	}
	if m.place.On == "" {
		if err := p.pullMissing(c.Context(), cfg.Plan, m.pull); err != nil {
			return err
		}
	}
	if os.Getenv(testbed.EnteredVariable) != "" { // the parent outside the namespaces shows the page
		m.open, m.serve = false, false
	}
	if m.serve {
		page, stop, err := p.listen(c.Context(), report.Live(out), "127.0.0.1:0", false,
			"the live page: http://ADDRESS/TOKEN")
		if err != nil {
			return err
		}
		defer stop()
		if m.open {
			p.browse(page)
		}
	}
	code, done, err := 0, false, error(nil)
	if m.place.On == "" {
		code, done, err = enterNamespace(cfg.Plan)
	}
	if !done && err == nil {
		err = p.execute(c.Context(), cfg, m.place)
	}
	if page := filepath.Join(out, "report.html"); m.open && !m.serve {
		if _, missing := os.Stat(page); missing == nil {
			p.browse(page)
		}
	}
	return exitWith(code, err)
}

// enterNamespace runs the command again inside new namespaces if we may not create any
// ourselves and the experiment needs no endpoint outside.
func enterNamespace(plan *experiment.Plan) (code int, done bool, err error) {
	if slices.ContainsFunc(plan.Experiment.Systems, experiment.SystemUse.Attached) {
		return 0, false, nil
	}
	code, done, err = testbed.Enter()
	if !done {
		err = nil // without namespaces, the testbed creates plain hosts and says so
	}
	return code, done, err
}

// exitWith exits with the status of the process inside the namespaces, which has printed all
// messages.
func exitWith(code int, err error) error {
	if err == nil && code != 0 {
		os.Exit(code)
	}
	return err
}

// execute runs a plan here or elsewhere, and reports on it here, whatever the end.
func (p *program) execute(ctx context.Context, cfg engine.Config, on place) error {
	dir := cfg.Dir
	fill(&cfg)
	cfg.Hosts = agent.Wanted()
	run := engine.Run
	if on.On != "" {
		place, err := on.open(p.note)
		if err != nil {
			return ui.Exit(ui.CodeUsage, err)
		}
		run = (&remote.Launcher{Place: place, At: on.Where, Sync: on.sync}).Run
	}
	shown := &progress{ui: p.ui, plan: cfg.Plan, dir: dir, resumed: cfg.Resume, mentioned: map[string]bool{}}
	cfg.Command, cfg.Progress = os.Args, shown.show
	res, err := run(ctx, cfg)
	p.ui.Progress("")
	if broken, is := errors.AsType[*record.WriteError](err); is {
		if broken.Gone {
			return err // there is nothing to report on
		}
		err = ui.WithHint(err, broken.Hint()+"; then continue: "+suggest.Command("plimsoll", "resume", dir))
	}
	err = withStatus(err)
	if res.Complete {
		p.ui.Say("%s is complete; nothing is left to run", dir)
	}
	if res.Trials+res.Failed+res.Skipped+res.Paused == 0 { // there is nothing to report on
		return errors.Join(err, interruptedError(res, dir))
	}
	// Partial runs get a report, too.
	rulings, e := p.writeReport(dir, reportOptions{})
	// The first error determines the exit status: how the run ended matters more than its
	// gates, which may lack data then.
	return errors.Join(err, e, verdict(res, dir), gateVerdict(rulings))
}

// fill adds what only the program knows to a configuration.
func fill(cfg *engine.Config) {
	cfg.Scenario = scenarios.ByName(cfg.Plan.Experiment.Scenario)
	cfg.Systems, cfg.Version = all.All(), programVersion()
}

// withStatus gives errors the status of a precondition if trying again does not help until
// something else has changed.
func withStatus(err error) error {
	if errors.As(err, new(*scenario.PreconditionError)) || errors.Is(err, upload.ErrDataChanged) {
		return ui.Exit(ui.CodePreconditions, err)
	}
	return err
}

// verdict turns the end of a run into an exit status.
func verdict(res engine.Result, dir string) error {
	end := func(code ui.Code, hint, format string, args ...any) error {
		return ui.Exit(code, ui.WithHint(fmt.Errorf(format, args...), hint))
	}
	resume := func(flags ...string) string {
		return suggest.Command(append(append([]string{"plimsoll", "resume"}, flags...), dir)...)
	}
	switch {
	case res.WrongBytes > 0:
		return end(ui.CodeCorruption, "the report lists them by system; keep the run directory as evidence",
			"%d operations returned bytes that are not the object's", res.WrongBytes)
	case res.Interrupt:
		return interruptedError(res, dir)
	case res.Stopped != nil:
		return end(ui.CodeExit, "a run's plan cannot change: to continue past this limit, start a new run with a different "+
			"exit."+res.Stopped.Condition, "%w", res.Stopped)
	case res.Invalid != "":
		return end(ui.CodeInvalid, "fix what the report names, then run them again: "+resume("--retry-invalid")+
			"; or continue regardless: "+resume("--keep-going"), "stopped: %s", res.Invalid)
	case res.LostObjects > 0:
		return end(ui.CodeLost, "the report says which and why; plimsoll resume does not retry objects that were given up",
			"the load test finished, but %d objects were not stored, were never seen durable, or failed verification",
			res.LostObjects)
	case res.Trials+res.Failed+res.Skipped > 0 && res.Valid == 0:
		return end(ui.CodeInvalid, "see the table of validity in the report", "no trial is valid; the report says why")
	case len(res.Failing) > 0:
		return end(ui.CodeInvalid, "the report lists the failures by their cause; check the system's address and its logs",
			"no operation of %s succeeded", strings.Join(res.Failing, ", "))
	case res.Failed > 0:
		return end(ui.CodeIncomplete, "the report gives the reasons; to retry: "+resume(),
			"trials that could not be executed: %d; the report covers the rest", res.Failed)
	}
	return nil
}

func interruptedError(res engine.Result, dir string) error {
	if !res.Interrupt {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "plan.json")); err != nil {
		return ui.Exit(ui.CodeInterrupted, errors.New("interrupted before the run began; nothing was recorded"))
	}
	return ui.Exit(ui.CodeInterrupted, ui.WithHint(errors.New("interrupted; what was measured so far is kept"),
		"continue it: "+suggest.Command("plimsoll", "resume", dir)))
}

// place is where a run is executed, if not on this machine.
type place struct {
	remote.Where // On, Image and Pack
	sync         time.Duration
}

func (e *place) flags(c *cobra.Command) {
	e.placeFlags(c)
	c.Flags().DurationVar(&e.sync, "sync", 5*time.Minute,
		"with --on: bring the run directory here this often; 0: at the end")
}

func (e *place) placeFlags(c *cobra.Command) {
	c.Flags().StringVar(&e.On, "on", "", "run on other machines: ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]")
	c.Flags().StringVar(&e.Image, "image", "", "with --on kubernetes: a container image with this plimsoll (default "+
		kubernetes.Image+":VERSION)")
	c.Flags().BoolVar(&e.Pack, "pack", false, "with --on kubernetes: a node may have several machines")
}

// open opens the place that --on names, and makes e.On independent of the working directory.
func (e *place) open(note func(string)) (remote.Place, error) {
	kind, rest, _ := strings.Cut(e.On, ":")
	switch kind {
	case "ssh":
		file, err := filepath.Abs(rest)
		if err != nil {
			return nil, err
		}
		e.On = "ssh:" + file
		return ssh.Open(file)
	case "kubernetes":
		c, err := kubernetes.Open(rest, kubernetes.Options{Version: programVersion(), Image: e.Image, Pack: e.Pack,
			Note: note})
		if err != nil {
			return nil, err
		}
		e.On = "kubernetes:" + c.String()
		return c, nil
	}
	return nil, fmt.Errorf("--on %s: want ssh:HOSTS.yaml or kubernetes[:CONTEXT[/NAMESPACE]]", e.On)
}

func (p *program) note(text string) { p.ui.Say("note: %s", text) }
