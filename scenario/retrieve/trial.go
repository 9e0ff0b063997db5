package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// runner is one prepared system.
type runner struct {
	*scenario.CreatedObjects
	site   scenario.Site
	node   system.Node
	server system.HTTPServer // the same
	sets   map[string][]object

	references int               // copies made so far
	brought    map[copyOf]string // where the copies are
	copyMost   int64             // bytes of an object that are fetched for reference, unless cells fetch the whole
}

// Trial runs the load generator as a process of its own on the client's host, or as
// several, so that what it costs is measured apart and its sockets are behind the link.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load,
	error) {
	if cell.Retrieve.Mix != nil {
		return r.mixed(ctx, cell, seed, sink)
	}
	spec, err := r.spec(cell, seed)
	if err != nil {
		return scenario.Load{}, err
	}
	spec.Epoch = sink.Epoch
	cold := followLink(&spec, sink.Link)
	var generators []httpload.Generator
	var procs []testbed.Process
	hosts := r.site.Generators
	parts := spec.Split(len(hosts))
	for i := range parts {
		if err := r.bring(ctx, hosts[i], &parts[i]); err != nil {
			return scenario.Load{}, err
		}
		stdin, feed := io.Pipe()
		stream, stdout := io.Pipe()
		defer feed.Close()
		proc, err := hosts[i].Start(ctx, testbed.Command{
			Name: generatorName(i), Role: "generator", Args: append(slices.Clone(r.site.Self), "node", "load"),
			Dir: r.site.Dir, Stdin: stdin, Stdout: stdout, // the generator's death ends the stream
		})
		if err != nil {
			return scenario.Load{}, err
		}
		defer proc.Stop(context.WithoutCancel(ctx))
		defer stream.Close() // before Stop, which waits until the output has been taken
		procs = append(procs, proc)
		// The generator watches the pipe that it reads: should we die, it closes and the load ends.
		generators = append(generators, httpload.Generator{In: feed, Out: stream,
			Elsewhere: hosts[i].Machine().Name() != ""})
	}
	result, err := httpload.Drive(ctx, parts, generators, sink.Block,
		func(p httpload.Progress) { sink.Progress(p.Ops, p.Bytes) })
	switch {
	case err != nil && ctx.Err() != nil:
		return scenario.Load{}, ctx.Err()
	case err != nil:
		return scenario.Load{}, fmt.Errorf("load generator: %w", whoDied(err, procs))
	}
	load := loadOf(result)
	if len(hosts) > 1 {
		load.Notes = append(load.Notes, fmt.Sprintf("load generators: %d of the %d of --clients", len(parts),
			len(hosts)))
	}
	if cold != "" {
		load.Notes = append(load.Notes, cold)
	}
	load.Notes = append(load.Notes, verifiedBy(r.sets[cell.Data.Key()], cell.Retrieve.Receive)...)
	return load, ctx.Err()
}

// whoDied adds to the failure of a generator how its process ended.
func whoDied(err error, procs []testbed.Process) error {
	var failed *httpload.GeneratorError
	if !errors.As(err, &failed) {
		return err
	}
	proc := procs[failed.Index]
	select {
	case <-proc.Done():
	case <-time.After(2 * time.Second):
	}
	if died := proc.Err(); died != nil {
		err = fmt.Errorf("%w (the process %s on host %s ended: %w; see %s)", err, proc.Name(), proc.Host().Name(),
			died, proc.LogPath())
	}
	return err
}

// followLink gives a load the rate of its link, and the warm-up that fills it. cold is why there is none.
func followLink(spec *httpload.Spec, l *record.LinkCheck) (cold string) {
	p, _ := scenario.PathOf(l)
	if !math.IsInf(p.Rate, 1) {
		spec.Rate = p.Rate
	}
	if l != nil && l.Emulator == record.RealLink {
		p = scenario.Path{Rate: l.Rate / 8, RTT: l.RTT} // no limit, but what windows have to fill
	}
	if spec.Arrivals == nil && spec.Connections == "keep" {
		if cold = tooLongToWarm(*spec, p.Rate); cold == "" {
			spec.Warmup = p.Warmup(spec.Concurrency)
		}
	}
	return cold
}

// tooLongToWarm is why connections are not warmed up: a server that does not serve ranges
// sends each the whole object, and the link cannot carry so much within the stall limit.
// Such a warm-up would be cut off, and its connections with it.
func tooLongToWarm(spec httpload.Spec, rate float64) string {
	known := rate > 0 && !math.IsInf(rate, 1)
	for _, o := range spec.Objects {
		all := float64(o.Size) * float64(spec.Concurrency)
		if o.Undivided && known && (o.Size < 0 || all > rate*spec.Stall.Seconds()) {
			return "not warmed up: the server does not serve ranges, and whole objects on all connections take " +
				"longer than limits.stall"
		}
	}
	return ""
}

// generatorName names the process of a generator, as it is in samples and logs.
func generatorName(i int) string {
	if i == 0 {
		return "load"
	}
	return fmt.Sprintf("load-%d", i+1)
}

// bring copies the files that a generator on another machine reads into our directory there.
func (r *runner) bring(ctx context.Context, host testbed.Host, spec *httpload.Spec) error {
	if host.Machine().Name() == "" {
		return nil
	}
	var paths []*string
	if spec.Arrivals != nil {
		arrivals := *spec.Arrivals // that of the other generators
		spec.Arrivals = &arrivals
		paths = append(paths, &arrivals.Log)
	}
	paths = append(paths, &spec.CAFile)
	spec.Objects = slices.Clone(spec.Objects)
	for i := range spec.Objects {
		paths = append(paths, &spec.Objects[i].Reference)
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		from := copyOf{host, *path}
		if r.brought[from] == "" {
			to := filepath.Join(r.site.Dir, fmt.Sprintf("brought-%d", len(r.brought)+1))
			f, err := os.Open(*path)
			if err == nil {
				err = host.Files().Write(ctx, to, 0o600, f)
				f.Close()
			}
			if err != nil {
				return fmt.Errorf("load generator: copy %s to host %s: %w", *path, host.Name(), err)
			}
			r.brought[from] = to
		}
		*path = r.brought[from]
	}
	return nil
}

// copyOf is a file that a host has a copy of.
type copyOf struct {
	host testbed.Host
	path string
}

// clockShare is the share of a trial's window that the error of a generator's clock may be.
const clockShare = 0.01

func loadOf(res httpload.Result) scenario.Load {
	l := scenario.Load{
		Seconds: float64(res.Ended-res.Started) / 1e9, Warmed: float64(res.Warmed), CPU: res.CPU,
		RSSPeak:      float64(res.MaxRSS),
		AchievedRate: res.AchievedRate, LagP99: res.Lag.P99,
		Notes: []string{"receive: " + res.Receive, "protocol: " + res.Protocol},
	}
	if res.Open {
		l.OfferedRate = res.OfferedRate
	}
	if res.Saturated {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorSaturated)
	}
	if res.Behind {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorLate)
	}
	limit := time.Duration(clockShare * float64(res.Ended-res.Started))
	for i, c := range res.Clocks {
		if c == (httpload.ClockOffset{}) { // ours
			continue
		}
		name := generatorName(i)
		l.Details = append(l.Details, record.Detail{Kind: record.DetailClockAhead, Name: name,
			Value: c.Ahead.Seconds()},
			record.Detail{Kind: record.DetailClockError, Name: name, Value: c.Error.Seconds()})
		if c.Error > limit {
			l.Invalid = append(l.Invalid, record.ReasonClock)
			l.Notes = append(l.Notes, fmt.Sprintf("the clock of %s is known to %s, more than 1 %% of the window", name,
				words.Duration(c.Error)))
		}
	}
	l.Invalid = slices.Compact(l.Invalid)
	if res.Redirects > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("redirects followed: %d", res.Redirects))
	}
	for _, why := range res.Why {
		l.Notes = append(l.Notes, "generator: "+why)
	}
	return l
}

// spec is what the load generator is to do in one trial.
func (r *runner) spec(cell experiment.Cell, seed uint64) (httpload.Spec, error) {
	c := cell.Retrieve
	limits := r.site.Limits
	spec := httpload.Spec{
		Concurrency: c.Concurrency, Range: int64(c.Range), Order: c.Order, Zipf: c.Zipf,
		Connections: c.Connections, HTTP: c.HTTP, Receive: c.Receive,
		Requests: c.Requests, Bytes: int64(c.Bytes), PerWorker: c.PerWorker, Duration: c.Duration.Std(),
		Deadline: limits.Deadline.Std(), Stall: limits.Stall.Std(), Seed: seed,
	}
	if a := c.Arrivals; a != nil {
		to, length := &workload.ArrivalSpec{Process: a.Process, Rate: float64(a.Rate)}, time.Duration(0)
		for _, s := range a.Steps {
			to.Steps = append(to.Steps, workload.Step{PerSecond: float64(s.Rate), For: s.For.Std()})
			length += s.For.Std()
		}
		if a.Log != "" {
			to.Log, to.LogSize = scenario.InBase(r.site.Base, a.Log), a.Found.Size
			to.Speed, to.AsIs = a.Speed, cell.Data.Objects == 0
		}
		spec.Arrivals, spec.MaxInFlight = to, a.MaxInFlight
		spec.Duration = cmp.Or(spec.Duration, length) // steps end by themselves
	}
	set := r.sets[cell.Data.Key()]
	if spec.Bytes > 0 && spec.Range == 0 && spec.Arrivals == nil {
		spec.Requests, spec.Bytes = burst(set, spec), 0
	}
	for _, o := range set {
		t, err := r.server.Target(o.ref)
		if err != nil {
			return spec, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		spec.CAFile, spec.Insecure = t.CAFile, t.Insecure // as those of all objects of a system
		spec.Objects = append(spec.Objects, httpload.Object{
			URL: t.URL.String(), Size: o.size, Within: o.payload, Header: t.Header,
			Content: o.content, Reference: o.reference, Follow: t.Follow, Moved: o.moved, Undivided: o.whole != "",
		})
	}
	return spec, nil
}

// burst converts a bound in bytes to a number of requests for whole objects: at least
// one for every worker, as the plan has it where it knows the sizes.
func burst(set []object, spec httpload.Spec) int64 {
	var sum int64
	for _, o := range set {
		sum += max(1, o.size)
	}
	requests := max(int64(spec.Concurrency), (spec.Bytes*int64(len(set))-1)/sum+1)
	if spec.Requests > 0 {
		return min(spec.Requests, requests)
	}
	return requests
}
