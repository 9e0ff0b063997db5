package retrieve

import (
	"cmp"
	"context"
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
	server system.HTTPServer // the same node
	sets   map[string][]object

	references int               // number of reference copies so far
	brought    map[copyOf]string // paths of the copies on other machines
	copyMost   int64             // limits the bytes of a reference copy, unless cells fetch whole objects
}

// Trial runs the load generator in one or several separate processes on the clients' hosts, so
// that its CPU is measured separately and its sockets are behind the link.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load,
	error) {
	if cell.Retrieve.Mix != nil {
		return r.mixTrial(ctx, cell, seed, sink)
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
		defer stream.Close() // before Stop, which waits until the output has been read
		procs = append(procs, proc)
		// The generator watches the pipe that it reads: if this process dies, the pipe is closed and
		// the load ends.
		generators = append(generators, httpload.Generator{In: feed, Out: stream,
			Elsewhere: hosts[i].Machine().Name() != "", Ended: func() error { return howEnded(proc) }})
	}
	result, err := httpload.Drive(ctx, parts, generators, sink.Block,
		func(p httpload.Progress) { sink.Progress(p.Ops, p.Bytes) })
	switch {
	case err != nil && ctx.Err() != nil:
		return scenario.Load{}, ctx.Err()
	case err != nil:
		return scenario.Load{}, fmt.Errorf("load generator: %w", err)
	}
	load := loadOf(result)
	for i, proc := range procs {
		load.RSSPeak += proc.Peak()
		generators[i].In.Close() // ends it
	}
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

// howEnded returns how a generator's process ended, or nil.
func howEnded(proc testbed.Process) error {
	select {
	case <-proc.Done():
	case <-time.After(2 * time.Second):
	}
	return proc.Err()
}

// followLink sets the rate of the link in spec, and the warm-up that fills the link. cold is why
// there is no warm-up.
func followLink(spec *httpload.Spec, l *record.LinkCheck) (cold string) {
	p, _ := scenario.PathOf(l)
	if !math.IsInf(p.Rate, 1) {
		spec.Rate = p.Rate
	}
	if l != nil && l.Emulator == record.RealLink {
		p = scenario.Path{Rate: l.Rate / 8, RTT: l.RTT} // no load line, but the path to fill with windows
	}
	if spec.Arrivals == nil && spec.Connections == "keep" {
		if cold = tooLongToWarm(*spec, p.Rate); cold == "" {
			spec.Warmup = p.Warmup(spec.Concurrency)
		}
	}
	return cold
}

// tooLongToWarm returns why connections cannot be warmed up, or "". A server that does not serve
// ranges sends the whole object on each connection, which the link may not be able to carry
// within the stall limit. Such a warm-up would be cut off together with its connections.
func tooLongToWarm(spec httpload.Spec, rate float64) string {
	known := rate > 0 && !math.IsInf(rate, 1)
	for _, o := range spec.Objects {
		all := float64(o.Size) * float64(spec.Concurrency)
		if o.Undivided != "" && known && (o.Size < 0 || all > rate*spec.Stall.Seconds()) {
			return "not warmed up: the server does not serve ranges, and whole objects on all connections take " +
				"longer than limits.stall"
		}
	}
	return ""
}

// generatorName returns the name of a generator's process in samples and logs.
func generatorName(i int) string {
	if i == 0 {
		return "load"
	}
	return fmt.Sprintf("load-%d", i+1)
}

// bring copies the files that a generator on another machine reads into the scratch directory
// there.
func (r *runner) bring(ctx context.Context, host testbed.Host, spec *httpload.Spec) error {
	if host.Machine().Name() == "" {
		return nil
	}
	var paths []*string
	if spec.Arrivals != nil {
		arrivals := *spec.Arrivals // shared with the other generators: change a copy
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

// copyOf identifies a copy of a file on a host.
type copyOf struct {
	host testbed.Host
	path string
}

// clockShare is the largest error of a generator's clock as a share of a trial's window.
const clockShare = 0.01

func loadOf(res httpload.Result) scenario.Load {
	l := scenario.Load{
		Seconds: float64(res.Ended-res.Started) / 1e9, Warmed: float64(res.Warmed), CPU: res.CPU,
		OfferedRate: res.OfferedRate,
		Notes:       []string{"receive: " + res.Receive, "protocol: " + res.Protocol},
	}
	if res.Saturated {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorSaturated)
	}
	if res.Behind {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorLate)
	}
	limit := time.Duration(clockShare * float64(res.Ended-res.Started))
	for i, c := range res.Clocks {
		if c == (httpload.ClockOffset{}) { // on this machine
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

// spec returns the load generator's task in one trial.
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
	for _, o := range r.sets[cell.Data.Key()] {
		t, err := r.server.Target(o.ref)
		if err != nil {
			return spec, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		spec.CAFile, spec.Insecure = t.CAFile, t.Insecure // the same for all objects of a system
		o.URL, o.Header = t.URL.String(), t.Header
		spec.Objects = append(spec.Objects, o.Object)
	}
	return spec, nil
}
