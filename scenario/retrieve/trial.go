package retrieve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/workload"
)

// runner is one prepared system.
type runner struct {
	site   scenario.Site
	node   system.Node
	server system.HTTPServer // the same
	ours   *scenario.CreatedObjects
	sets   map[string][]object

	references int   // copies made so far
	copyMost   int64 // bytes of an object that are fetched for reference, unless cells fetch the whole
}

// Trial runs the load generator as a process of its own on the client's host,
// so that what it costs is measured apart and its sockets are behind the link.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (scenario.Load, error) {
	spec, err := r.spec(cell, seed)
	if err != nil {
		return scenario.Load{}, err
	}
	spec.Epoch = sink.Epoch
	p, _ := scenario.PathOf(sink.Link)
	if !math.IsInf(p.Rate, 1) {
		spec.Rate = p.Rate
	}
	if c := cell.Retrieve; c.Arrivals == nil && c.Connections == "keep" {
		spec.Warmup = p.Warmup(c.Concurrency)
	}
	in, err := json.Marshal(spec)
	if err != nil {
		return scenario.Load{}, fmt.Errorf("load generator: %w", err)
	}
	stdin, feed := io.Pipe()
	defer feed.Close()
	stream, stdout := io.Pipe()
	proc, err := r.site.Client.Start(ctx, testbed.Command{
		Name: "load", Role: "generator", Args: append(append([]string{}, r.site.Self...), "node", "load"),
		Dir: r.site.Dir, Stdin: stdin, Stdout: stdout, // the generator's death ends the stream
	})
	if err != nil {
		return scenario.Load{}, err
	}
	defer proc.Stop(context.WithoutCancel(ctx))
	defer stream.Close() // before Stop, which waits until the output has been taken
	// The generator reads its input to the newline and watches the pipe: should
	// we die, it closes and the load ends.
	go feed.Write(append(in, '\n'))

	// A cancelled trial asks the generator to stop and still reads what it did.
	stop := context.AfterFunc(ctx, func() {
		feed.Close()
		time.AfterFunc(5*time.Second, func() { stream.CloseWithError(os.ErrDeadlineExceeded) })
	})
	defer stop()

	result, err := httpload.ReadStream(stream, sink.Block, func(p httpload.Progress) {
		sink.Progress(p.Ops, p.Bytes)
	})
	if err != nil {
		if ctx.Err() != nil {
			return scenario.Load{}, ctx.Err()
		}
		select {
		case <-proc.Done():
		case <-time.After(2 * time.Second):
		}
		if died := proc.Err(); died != nil {
			err = fmt.Errorf("%w (the process ended: %v; see %s)", err, died, proc.LogPath())
		}
		return scenario.Load{}, fmt.Errorf("load generator: %w", err)
	}
	load := loadOf(result)
	load.Notes = append(load.Notes, verifiedBy(r.sets[cell.Data.Key()], cell.Retrieve.Receive)...)
	return load, ctx.Err()
}

// Close implements Runner.
func (r *runner) Close(ctx context.Context) error { return r.ours.RemoveAll(ctx, r.node) }

func loadOf(res httpload.Result) scenario.Load {
	l := scenario.Load{
		Seconds: float64(res.Ended-res.Started) / 1e9, Warmed: float64(res.Warmed), CPU: res.CPU, RSSPeak: float64(res.MaxRSS),
		AchievedRate: res.AchievedRate, LagP99: res.Lag.P99,
		Notes: []string{"receive: " + res.Receive, "protocol: " + res.Protocol},
	}
	if res.Loop == "open" {
		l.OfferedRate = res.OfferedRate
	}
	if res.Saturated {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorSaturated)
	}
	if res.Behind {
		l.Invalid = append(l.Invalid, record.ReasonGeneratorLate)
	}
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
		Concurrency: c.Concurrency, Range: int64(c.Range), Order: c.Order,
		Connections: c.Connections, HTTP: c.HTTP, Receive: c.Receive,
		Requests: c.Requests, Bytes: int64(c.Bytes), PerWorker: c.PerWorker, Duration: c.Duration.Std(),
		Deadline: limits.Deadline.Std(), Stall: limits.Stall.Std(), Seed: seed,
	}
	if a := c.Arrivals; a != nil {
		spec.Arrivals = arrivalSpec(*a)
		spec.MaxInFlight = a.MaxInFlight
		if spec.Duration == 0 && a.Process == "steps" { // they end by themselves
			for _, step := range a.Steps {
				spec.Duration += step.For.Std()
			}
		}
	}
	set, ok := r.sets[cell.Data.Key()]
	if !ok {
		return spec, errors.New("the cell's data was never prepared")
	}
	if spec.Bytes > 0 && spec.Range == 0 && spec.Arrivals == nil {
		spec.Requests, spec.Bytes = burst(set, spec), 0
	}
	// A burst is one only when all its requests leave together.
	spec.Barrier = c.PerWorker == 1 && c.Connections == "keep" && c.Arrivals == nil
	for _, o := range set {
		if err := o.fits(c.Range); err != nil {
			return spec, fmt.Errorf("%s: %w", r.site.Use.Name, err)
		}
		t, err := r.server.Target(o.ref)
		if err != nil {
			return spec, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		spec.Objects = append(spec.Objects, httpload.Object{
			URL: t.URL.String(), Size: o.size, Within: o.payload, Header: t.Header, CAFile: t.CAFile, Insecure: t.Insecure,
			Content: o.content, Reference: o.reference, Follow: t.Follow, Moved: o.moved,
		})
		spec.Barrier = spec.Barrier && t.URL.Scheme == "http" && !o.moved
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

func arrivalSpec(a experiment.Arrivals) *workload.ArrivalSpec {
	spec := &workload.ArrivalSpec{Process: a.Process, Rate: float64(a.Rate), To: float64(a.To)}
	for _, s := range a.Steps {
		spec.Steps = append(spec.Steps, workload.StepSpec{Rate: float64(s.Rate), For: s.For.Std()})
	}
	return spec
}
