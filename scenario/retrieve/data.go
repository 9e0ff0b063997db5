package retrieve

import (
	"context"
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/httpload"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// object is an object to fetch. Its URL and header are set for each trial.
type object struct {
	httpload.Object
	name   string
	ref    system.Ref
	checks string // note on how the reference was checked
}

// fits returns why ranges of a size cannot be fetched from the object.
func (o object) fits(size experiment.Bytes) error {
	span := o.Span()
	switch {
	case size == 0:
		return nil
	case o.Undivided != "":
		return scenario.Unfit(o.name, system.Problem{What: "ranges cannot be fetched: " + o.Undivided + "; use range: whole",
			Hint: "set retrieve.range to whole, or serve the object from a server that answers ranges"})
	case span < 0:
		return fmt.Errorf("%s: its size is unknown, so ranges cannot be drawn from it; use range: whole", o.name)
	case span < int64(size):
		return fmt.Errorf("%s has %d bytes, fewer than the range of %s", o.name, span, size)
	}
	return nil
}

// dataSet stores the objects of a data set in the system or, if the system has its own objects,
// finds them.
func (r *runner) dataSet(ctx context.Context, data experiment.Data, cells []experiment.Cell) ([]object, error) {
	if log := cells[0].Retrieve.Replays(); log != nil {
		return r.replayed(ctx, log, data.Objects > 0)
	}
	if data.Size > 0 {
		return r.stored(ctx, slices.Repeat([]int64{int64(data.Size)}, data.Objects))
	}
	verify, whole, largest := false, false, experiment.Bytes(0)
	for _, c := range cells {
		if c.Data.Key() == data.Key() {
			verify = verify || c.Retrieve.Receive != "drop"
			whole = whole || c.Retrieve.Range == 0
			largest = max(largest, c.Retrieve.Range)
		}
	}
	if whole {
		largest = 0
	}
	return r.ownObjects(ctx, verify, int64(largest))
}

// content returns the content of the i-th object of a size. The seed is mixed with the size, so
// that data sets do not share content.
func (r *runner) content(i int, size int64) *workload.Content {
	return &workload.Content{Seed: r.site.Seed ^ uint64(size), Index: uint64(i), Size: size}
}

// stored stores objects of the given sizes.
func (r *runner) stored(ctx context.Context, sizes []int64) ([]object, error) {
	store, ok := r.node.(system.Store)
	if !ok {
		return nil, fmt.Errorf("%s: objects cannot be stored in it, and the experiment asks for %d", r.site.Use.Name,
			len(sizes))
	}
	set := make([]object, 0, len(sizes))
	for i, size := range sizes {
		content := r.content(i, size)
		o := object{name: fmt.Sprintf("plimsoll-%d-%d-%06d.bin", r.site.Seed, size, i)}
		o.Size, o.Content = size, content
		var err error
		o.ref, err = system.Seed(ctx, store, o.name, size, content.Reader())
		r.Add(o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, o.name, experiment.Bytes(size), err)
		}
		target, err := r.server.Target(o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		if target.Encoded != "" {
			// The served bytes are not the object's, and their number is unknown before a fetch.
			o.Undivided, o.Content = "it is served as "+target.Encoded, nil
			if err := r.refer(ctx, &o, target, "", 0); err != nil {
				return nil, err
			}
		}
		set = append(set, o)
	}
	return set, nil
}

// replayed returns the objects for replaying a log: one object for each of its paths, with the
// size from the log, or a single one for an existing server, which gets the paths unchanged.
func (r *runner) replayed(ctx context.Context, log *experiment.Arrivals, store bool) ([]object, error) {
	found, sizes, err := scenario.ReadRequestLog(scenario.InBase(r.site.Base, log.Log))
	if err == nil && found.SHA256 != log.Found.SHA256 {
		err = fmt.Errorf("the log %s has changed since the plan was made", log.Log)
	}
	if err != nil {
		return nil, scenario.Unfit(r.site.Use.Name, system.Problem{What: err.Error(),
			Hint: "put the file back, or begin a new run with a copy that does not change"})
	}
	if store {
		set, err := r.stored(ctx, sizes)
		for _, o := range set {
			if o.Undivided != "" {
				return nil, fmt.Errorf("%s: a log cannot be replayed: %s, and the log says nothing of that size",
					r.site.Use.Name, o.Undivided)
			}
		}
		return set, err
	}
	objects, err := r.listed(ctx)
	if err != nil {
		return nil, err
	}
	return []object{{Object: httpload.Object{Size: -1}, name: "replay", ref: objects[0].Ref}}, nil
}

// listed returns the objects that existed before the run, at least one.
func (r *runner) listed(ctx context.Context) ([]system.Object, error) {
	var objects []system.Object
	var err error
	if r.site.Use.Attached() {
		objects, err = system.Found(ctx, r.node)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: list its objects: %w", r.site.Use.Name, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: it has no objects of its own; give data.size in the experiment file, and allow: "+
			"[write] when it is attached", r.site.Use.Name)
	}
	return objects, nil
}

// ownObjects returns the objects that existed before the run. If verify is set (some cell
// compares the received bytes) or the size is unknown, it fetches a reference copy of each before
// anything is measured, see refer. largest is the size of the largest range; 0 means that some
// cell fetches whole objects.
func (r *runner) ownObjects(ctx context.Context, verify bool, largest int64) ([]object, error) {
	objects, err := r.listed(ctx)
	if err != nil {
		return nil, err
	}
	var set []object
	for _, listed := range objects {
		o := object{httpload.Object{Size: listed.Size, Within: listed.Payload, Moved: listed.Moved}, listed.Name,
			listed.Ref, ""}
		target, err := r.server.Target(o.ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.site.Use.Name, o.name, err)
		}
		switch {
		case target.Encoded != "":
			o.Undivided = "it is served as " + target.Encoded
		case listed.NoRange:
			o.Undivided = "the server answers ranges with the whole"
		}
		if verify || o.Size < 0 {
			if err := r.refer(ctx, &o, target, listed.SHA256, largest); err != nil {
				return nil, err
			}
		}
		set = append(set, o)
	}
	return set, nil
}
