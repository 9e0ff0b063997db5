package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
)

// Limits of a plan: above them a file is a mistake, not an experiment.
const (
	maxCombinations = 1_000_000 // before `where`
	maxTrials       = 100_000
	maxSyncCells    = 64 // of a full factorial of knobs and conditions
)

// axisRef is one field that may be a factor.
type axisRef struct {
	path   string
	field  field
	values reflect.Value // the slice
}

// axes lists the axes of the experiment in the order of the format, so that
// the plan does not depend on the order of keys in a file.
func (e *Experiment) axes() []axisRef {
	var refs []axisRef
	var walk func(v reflect.Value, prefix string)
	walk = func(v reflect.Value, prefix string) {
		for _, f := range tableOf(v.Type()).fields {
			fv := v.Field(f.index)
			switch {
			case f.axis:
				refs = append(refs, axisRef{prefix + f.key, f, e.levels(prefix+f.key, f, fv)})
			case prefix+f.key == varyPath:
				refs = append(refs, v.Addr().Interface().(*Sync).varied()...)
			case f.typ.Kind() == reflect.Struct:
				walk(fv, prefix+f.key+".")
			case f.typ.Kind() == reflect.Pointer && !fv.IsNil() && (f.scenarios == nil || e.Scenario == "" ||
				slices.Contains(f.scenarios, e.Scenario)):
				walk(fv.Elem(), prefix+f.key+".")
			}
		}
	}
	walk(reflect.ValueOf(e).Elem(), "")
	return refs
}

// levels are the values of the key f at path, one of which is v; none where it was not
// given and has no default.
func (e *Experiment) levels(path string, f field, v reflect.Value) reflect.Value {
	all := reflect.New(reflect.SliceOf(f.typ)).Elem()
	if raw, is := e.Factors[path]; is {
		if err := json.Unmarshal(raw, all.Addr().Interface()); err == nil { // else Plan says so
			return all
		}
	}
	if v.IsZero() && f.zero == "" && (f.def == "" || f.min != "" && f.min != "0") {
		return all
	}
	return reflect.Append(all, v)
}

// levelsOf are the levels of the key at path, as values of its type.
func levelsOf[T any](e *Experiment, path string) []T {
	for _, a := range e.axes() {
		if a.path == path {
			return a.values.Interface().([]T)
		}
	}
	return nil
}

// all are the levels of the factor.
func (a axisRef) all() []reflect.Value {
	levels := make([]reflect.Value, a.values.Len())
	for i := range levels {
		levels[i] = a.values.Index(i)
	}
	return levels
}

// combination is one choice of levels, before `where`.
type combination struct {
	e      *Experiment
	axes   []axisRef
	levels []int // index into each axis; -1 for an empty one
	system *SystemUse
}

// level is what a condition sees.
func (c *combination) level(path string) gate.Level {
	for i, a := range c.axes {
		if a.path != path || c.levels[i] < 0 {
			continue
		}
		l := levelOf(a.field, a.values.Index(c.levels[i]))
		if path == rangePath && a.values.Index(c.levels[i]).IsZero() {
			l.Number = c.level(dataSizePath).Number
		}
		return l
	}
	switch path {
	case systemPath:
		return gate.Level{Text: c.system.Name, Number: math.NaN()}
	case dataSizePath:
		return gate.Level{Number: math.Inf(1)} // unknown: as large as it needs to be
	}
	return gate.Level{Number: math.NaN()}
}

// name describes the combination for an error: its factors.
func (c *combination) name() string {
	parts := []string{c.system.Name}
	for i, a := range c.axes {
		if a.values.Len() > 1 && c.levels[i] >= 0 {
			parts = append(parts, a.field.label+" "+a.field.text(a.values.Index(c.levels[i])))
		}
	}
	return strings.Join(parts, ", ")
}

// cellError is an impossible cell.
type cellError struct {
	unitError
	path  string // of the field at fault
	index int    // of its level
}

// at is the path of the level at fault.
func (e *cellError) at() string { return fmt.Sprintf("%s[%d]", e.path, e.index) }

// expand makes the cells: the product of all levels and systems, without what
// `where` leaves out. The system varies fastest, so that cells that are
// compared stand side by side.
func (e *Experiment) expand(conditions []gate.Condition) ([]Cell, []*cellError) {
	axes := e.axes()
	total, longest := 1.0, axes[0]
	for _, a := range axes {
		total *= float64(max(1, a.values.Len()))
		if a.values.Len() > longest.values.Len() {
			longest = a
		}
	}
	refuse := func(path, hint, format string, args ...any) ([]Cell, []*cellError) {
		return nil, []*cellError{{unitError{fmt.Sprintf(format, args...), hint}, path, 0}}
	}
	if all := total * float64(max(1, len(e.Systems))); all > maxCombinations {
		return refuse(longest.path, "shorten the lists, or make several experiments",
			"the factors have %.0f combinations; at most %d are possible", all, maxCombinations)
	}
	var combos []combination
	seen := map[string]bool{}
	blocks, count := e.Repetitions.Max+e.Warmup.Trials, 0
	for k := range int(total) {
		levels := make([]int, len(axes))
		for i, a := range slices.Backward(axes) {
			n := a.values.Len()
			levels[i] = k%max(1, n) - boolInt(n == 0) // -1 where it has none
			k /= max(1, n)
		}
		for i := range e.Systems {
			c := combination{e: e, axes: axes, levels: levels, system: &e.Systems[i]}
			if slices.ContainsFunc(conditions, func(keep gate.Condition) bool { return !keep(c.level) }) {
				continue
			}
			if count++; count*blocks > maxTrials {
				continue // only count on, for the message
			}
			c.levels = c.applied()
			if key := fmt.Sprint(i, c.levels); !seen[key] {
				seen[key] = true
				combos = append(combos, c)
			} else {
				count--
			}
		}
	}
	switch {
	case count == 0:
		return refuse("where", "", "no cell is left: `where` excludes every combination of the factors")
	case e.Scenario == "sync" && count > maxSyncCells:
		return refuse(longest.path, "choose fewer knobs or levels, or leave combinations out with `where`",
			"%d cells: all combinations of the knobs and conditions are executed; at most %d are possible", count,
			maxSyncCells)
	case count*blocks > maxTrials:
		return refuse(longest.path, "shorten the lists, narrow them with `where`, or repeat less",
			"%d trials (%s × %d repetitions, warm-up included); at most %d are possible", count*blocks,
			plural(count, "cell"),
			blocks, maxTrials)
	}
	return e.cells(combos)
}

// ownLevel is what an axis has where it does not apply: the system has a link or
// objects of its own.
const ownLevel = "own"

// applied are the levels that apply to the combination's system; -1 for the others. An
// attached system is reached over the network there is, and has objects of its own
// unless it may be written to.
func (c *combination) applied() []int {
	levels := slices.Clone(c.levels)
	for i, a := range c.axes {
		if c.system.Mode == "attach" && (strings.HasPrefix(a.path, "link.") || strings.HasPrefix(a.path, "data.") &&
			!slices.Contains(c.e.Allow, "write")) {
			levels[i] = -1
		}
	}
	return levels
}

func (e *Experiment) cells(combos []combination) ([]Cell, []*cellError) {
	varies := varying(combos)
	width := max(3, len(fmt.Sprint(len(combos))))
	var cells []Cell
	var bad []*cellError
	for i := range combos {
		c := &combos[i]
		cell := Cell{
			ID: fmt.Sprintf("c%0*d", width, i+1), System: c.system.Name, Baseline: c.system.Baseline,
			Factors: []Factor{{Path: systemPath, Label: systemPath, Value: c.system.Name}},
		}
		for k, a := range c.axes {
			switch {
			case varies[k] && c.levels[k] < 0:
				cell.Factors = append(cell.Factors, Factor{Path: a.path, Label: a.field.label, Value: ownLevel})
			case varies[k]:
				cell.Factors = append(cell.Factors, factorOf(a, a.values.Index(c.levels[k])))
			}
		}
		if err := c.resolve(&cell); err != nil {
			bad = append(bad, err)
			continue
		}
		cells = append(cells, cell)
	}
	return cells, bad
}

// varying reports which axes are factors of the plan: those with several levels and,
// where nothing else distinguishes systems with a link or objects of their own, one
// whose only level is not zero.
func varying(combos []combination) []bool {
	axes := combos[0].axes
	varies, own := make([]bool, len(axes)), make([]bool, len(axes))
	apart := map[string]bool{} // by section
	for i, a := range axes {
		levels := map[int]bool{}
		for _, c := range combos {
			levels[c.levels[i]] = true
		}
		own[i] = levels[-1] && len(levels) > 1
		delete(levels, -1)
		varies[i] = len(levels) > 1
		section, _, _ := strings.Cut(a.path, ".")
		apart[section] = apart[section] || varies[i]
	}
	for i, a := range axes {
		section, _, _ := strings.Cut(a.path, ".")
		if own[i] && !apart[section] && !a.values.Index(0).IsZero() {
			varies[i], apart[section] = true, true
		}
	}
	return varies
}

func factorOf(a axisRef, v reflect.Value) Factor {
	f := Factor{Path: a.path, Label: a.field.label, Value: a.field.text(v)}
	if l := levelOf(a.field, v); !math.IsNaN(l.Number) && !math.IsInf(l.Number, 0) {
		f.Number, f.Unit = l.Number, a.field.kind().unit
	}
	return f
}

// resolve fills in the cell's values, one for each field, and checks that they
// can be had together.
func (c *combination) resolve(cell *Cell) *cellError {
	cell.Link = c.e.Link
	if c.e.Scenario != "sync" && (c.system.Mode == "start" || slices.Contains(c.e.Allow, "write")) {
		// Else the system has its own objects, and their sizes are not known here.
		cell.Data = c.e.Data
	}
	if from, key := c.e.scenarioSection(); from.IsValid() {
		section := cellField(reflect.ValueOf(cell).Elem(), key)
		section.Set(reflect.New(from.Type()))
		section.Elem().Set(from)
	}
	if cell.Retrieve != nil && cell.Retrieve.Arrivals != nil {
		arrivals := *cell.Retrieve.Arrivals
		cell.Retrieve.Arrivals = &arrivals
	}
	for i, a := range c.axes {
		if v := cellField(reflect.ValueOf(cell).Elem(), a.path); v.IsValid() && c.levels[i] >= 0 {
			v.Set(a.values.Index(c.levels[i]))
		} else if v.IsValid() {
			v.SetZero()
		}
	}
	if l := cell.Link; l.Regions != nil && l.Delay > 0 {
		return c.impossible("link.delay", "take one of them away, or leave the cell out with `where: [\"link.regions "+
			"== "+
			"none || link.delay == 0s\"]`",
			"the round trips of `link.regions` replace `link.delay`, which is %s", l.Delay)
	}
	if l := cell.Link; l.Jitter > l.Delay && l.Regions == nil {
		return c.impossible("link.jitter", "make `link.delay` as large as `link.jitter`, or leave the cell out with "+
			"`where: [\"link.jitter <= link.delay\"]`",
			"a delay of %s cannot vary by %s to either side", l.Delay, l.Jitter)
	}
	c.override(cell)
	switch {
	case cell.Sync != nil:
		cell.Sync.Vary = nil
		cell.Sync.Options, cell.Sync.Network = c.options()
		return c.checkSync(cell, cell.Sync)
	case cell.Overhead != nil:
		return c.checkOverhead(cell, cell.Overhead)
	case cell.Disseminate != nil:
		return c.checkDisseminate(cell, cell.Disseminate)
	case cell.Retrieve != nil:
		return c.checkRetrieve(cell, cell.Retrieve)
	}
	return nil
}

// cellField is the field of a struct at a path of the format; invalid where there is none.
func cellField(v reflect.Value, path string) reflect.Value {
	key, rest, more := strings.Cut(path, ".")
	v = reflect.Indirect(v)
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	f := tableOf(v.Type()).field(key)
	switch {
	case f == nil:
		return reflect.Value{}
	case more:
		return cellField(v.Field(f.index), rest)
	}
	return v.Field(f.index)
}

// override applies the settings that are the system's own, which were read before.
func (c *combination) override(cell *Cell) {
	section, key := c.e.scenarioSection()
	for name, text := range c.system.Override {
		if f := tableOf(section.Type()).field(name); f.parse(text, cellField(reflect.ValueOf(cell).Elem(),
			key+"."+name)) != nil {
			panic("experiment: override " + name + " was read before")
		}
	}
}

// checkRetrieve refuses cells that cannot be executed, and turns a bound in
// bytes into one in requests where sizes are known.
func (c *combination) checkRetrieve(cell *Cell, r *Retrieve) *cellError {
	size := int64(cell.Data.Size)
	if size > 0 && int64(r.Range) > size {
		return c.impossible(rangePath, "make the objects larger, or leave the cell out with `where: "+
			"[\"retrieve.range <= "+
			"data.size\"]`",
			"a range of %s does not fit into an object of %s", r.Range, cell.Data.Size)
	}
	if r.Receive == "drop" && r.HTTP == "2" {
		return c.impossible("retrieve.receive", "use receive: verify, or http: auto",
			"receive: drop works on plain HTTP/1.1 only, not with http: \"2\"")
	}
	if a := r.Replays(); a != nil && a.Found != nil && a.Found.Paths == 0 && cell.Data.Objects > 0 {
		return c.impossible("retrieve.arrivals.log", "replay a part of the log, or attach to a server that has the "+
			"objects",
			"the log has more than %d different paths, for each of which an object would be stored", MaxPaths)
	}
	if r.Zipf > 0 && r.Order == "sequential" {
		return c.impossible("retrieve.zipf", "use order: random or aligned, or zipf: uniform",
			"in sequential order no object is more popular than another")
	}
	if r.Mix != nil && size == 0 {
		return c.impossible("data.size", "write `data: {size: 64MiB}`",
			"`retrieve.mix` reads and stores objects of a known size")
	}
	if r.Arrivals != nil {
		r.Concurrency = 0
	}
	if n := requestBytes(cell.Data, r); r.Bytes > 0 && n > 0 {
		requests := max(int64(r.Concurrency), (int64(r.Bytes)-1)/n+1)
		if r.Requests == 0 || requests < r.Requests {
			r.Requests = requests
		}
		r.Bytes = 0
	}
	return nil
}

// requestBytes is the file bytes of one request, or 0 when the size of the
// objects is not known.
func requestBytes(d Data, r *Retrieve) int64 {
	if r.Range != 0 {
		return int64(r.Range)
	}
	return int64(d.Size)
}

// impossible is a cell that cannot be had, for what is at path.
func (c *combination) impossible(path, hint, format string, args ...any) *cellError {
	return c.fault(path, hint, "impossible cell (%s): %s", c.name(), fmt.Sprintf(format, args...))
}

func (c *combination) fault(path, hint, format string, args ...any) *cellError {
	err := &cellError{unitError{fmt.Sprintf(format, args...), hint}, path, -1}
	for i, a := range c.axes {
		if a.path == path {
			err.index = c.levels[i]
		}
	}
	return err
}

// Plan expands the experiment: all cells, the estimate and the hash. Its error
// is all impossible cells, or the first condition that cannot be read.
func (e *Experiment) Plan() (*Plan, error) {
	var wrong error
	conditions := e.conditions(func(_ int, err error) { wrong = err })
	if wrong != nil {
		return nil, wrong
	}
	cells, bad := e.expand(conditions)
	if bad != nil {
		errs := make([]error, len(bad))
		for i, b := range bad {
			errs[i] = b
		}
		return nil, errors.Join(errs...)
	}
	p := &Plan{Format: PlanFormat, Experiment: *e, Cells: cells, Warmup: e.Warmup.Trials, Blocks: e.Repetitions.Max}
	p.Experiment.Dropped = slices.DeleteFunc(slices.Clone(e.Dropped), func(system string) bool {
		return !slices.ContainsFunc(e.Gates, func(rule string) bool { return strings.Contains(rule, system) })
	})
	p.estimate()
	if len(p.Cells) == 0 {
		return nil, fmt.Errorf("no cell is left: in all of them one operation is expected to take longer than "+
			"overhead.longest (%s)", e.Overhead.Longest)
	}
	return p.seal()
}
