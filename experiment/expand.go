package experiment

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
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
				refs = append(refs, axisRef{prefix + f.key, f, fv})
			case prefix+f.key == varyPath:
				refs = append(refs, v.Addr().Interface().(*Sync).varied()...)
			case f.typ.Kind() == reflect.Struct:
				walk(fv, prefix+f.key+".")
			case f.typ.Kind() == reflect.Pointer && !fv.IsNil() && (f.scenario == "" || e.Scenario == "" || f.scenario == e.Scenario):
				walk(fv.Elem(), prefix+f.key+".")
			}
		}
	}
	walk(reflect.ValueOf(e).Elem(), "")
	return refs
}

// wherePaths are the paths that conditions may use.
func (e *Experiment) wherePaths(dropped []string) (map[string]wherePath, []string) {
	var names []string
	for _, s := range e.Systems {
		names = append(names, s.Name)
	}
	paths := map[string]wherePath{systemPath: {field{key: systemPath, typ: reflect.TypeFor[string]()}, append(names, dropped...)}}
	order := []string{systemPath}
	for _, a := range e.axes() {
		paths[a.path] = wherePath{field: a.field}
		order = append(order, a.path)
	}
	return paths, order
}

// combination is one choice of levels, before `where`.
type combination struct {
	e      *Experiment
	axes   []axisRef
	levels []int // index into each axis; -1 for an empty one
	system *SystemUse
}

func (c *combination) value(path string) (reflect.Value, *field) {
	for i := range c.axes {
		if c.axes[i].path == path && c.levels[i] >= 0 {
			return c.axes[i].values.Index(c.levels[i]), &c.axes[i].field
		}
	}
	return reflect.Value{}, nil
}

// level is what a condition sees.
func (c *combination) level(path string) level {
	if path == systemPath {
		return level{c.system.Name, math.NaN()}
	}
	v, f := c.value(path)
	if f == nil {
		if path == dataSizePath {
			return level{"", math.Inf(1)} // unknown: as large as it needs to be
		}
		return level{"", math.NaN()}
	}
	l := levelOf(*f, v)
	if r, ok := v.Interface().(RangeSize); ok && r == Whole {
		l.number = c.level(dataSizePath).number
	}
	return l
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
	path  string // of the field at fault
	index int    // of its level
	msg   string
	hint  string
}

func (e *cellError) Error() string {
	if e.hint == "" {
		return e.msg
	}
	return e.msg + " (" + e.hint + ")"
}

// expand makes the cells: the product of all levels and systems, without what
// `where` leaves out. The system varies fastest, so that cells that are
// compared stand side by side.
func (e *Experiment) expand(conditions []condition) ([]Cell, []*cellError) {
	axes := e.axes()
	total, longest := float64(max(1, len(e.Systems))), axes[0]
	for _, a := range axes {
		total *= float64(max(1, a.values.Len()))
		if a.values.Len() > longest.values.Len() {
			longest = a
		}
	}
	if total > maxCombinations {
		return nil, []*cellError{{path: longest.path, msg: fmt.Sprintf("the factors have %.0f combinations; at most %d are possible", total, maxCombinations), hint: "shorten the lists, or make several experiments"}}
	}
	var combos []combination
	seen := map[string]bool{}
	c := combination{e: e, axes: axes, levels: make([]int, len(axes))}
	blocks, count := e.Repetitions.Max+e.Warmup.Trials, 0
	c.each(0, func() {
		for i := range e.Systems {
			c.system = &e.Systems[i]
			if slices.ContainsFunc(conditions, func(keep condition) bool { return !keep(c.level) }) {
				continue
			}
			if count++; count*blocks > maxTrials {
				continue // only count on, for the message
			}
			kept := c
			kept.levels = c.applied()
			if key := fmt.Sprint(i, kept.levels); !seen[key] {
				seen[key] = true
				combos = append(combos, kept)
			} else {
				count--
			}
		}
	})
	switch {
	case count == 0:
		return nil, []*cellError{{path: "where", msg: "no cell is left: `where` excludes every combination of the factors"}}
	case e.Scenario == "sync" && count > maxSyncCells:
		return nil, []*cellError{{path: longest.path, msg: fmt.Sprintf("%d cells: all combinations of the knobs and conditions are executed; at most %d are possible", count, maxSyncCells),
			hint: "choose fewer knobs or levels, or leave combinations out with `where`"}}
	case count*blocks > maxTrials:
		return nil, []*cellError{{path: longest.path, msg: fmt.Sprintf("%d trials (%s × %d repetitions, warm-up included); at most %d are possible", count*blocks, plural(count, "cell"), blocks, maxTrials), hint: "shorten the lists, narrow them with `where`, or repeat less"}}
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
		if c.system.Mode == "attach" && (strings.HasPrefix(a.path, "link.") || strings.HasPrefix(a.path, "data.") && !slices.Contains(c.e.Allow, "write")) {
			levels[i] = -1
		}
	}
	return levels
}

// each calls do for every choice of levels.
func (c *combination) each(i int, do func()) {
	if i == len(c.axes) {
		do()
		return
	}
	n := c.axes[i].values.Len()
	if n == 0 {
		c.levels[i] = -1
		c.each(i+1, do)
		return
	}
	for l := range n {
		c.levels[i] = l
		c.each(i+1, do)
	}
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

// varying tells which axes are factors of the plan: those with several levels and,
// where nothing else tells systems with a link or objects of their own apart, one
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
	if l := levelOf(a.field, v); !math.IsNaN(l.number) && !math.IsInf(l.number, 0) && !isWord(v) {
		f.Number, f.Unit = l.number, a.field.kind().unit
	}
	return f
}

// resolve fills in the cell's values, one for each field, and checks that they
// can be had together.
func (c *combination) resolve(cell *Cell) *cellError {
	c.copy(reflect.ValueOf(&cell.Link).Elem(), reflect.ValueOf(c.e.Link), "link.")
	if l := cell.Link; l.Jitter > l.Delay {
		return c.fault("link.jitter", fmt.Sprintf("impossible cell (%s): a delay of %s cannot vary by %s to either side", c.name(), l.Delay, l.Jitter),
			"make `link.delay` as large as `link.jitter`, or leave the cell out with `where: [\"link.jitter <= link.delay\"]`")
	}
	if c.e.Scenario == "sync" && c.e.Sync != nil {
		s := &ResolvedSync{}
		s.Vary, s.Network = c.options()
		cell.Sync = s
		c.copy(reflect.ValueOf(s).Elem(), reflect.ValueOf(*c.e.Sync), "sync.")
		return c.checkSync(cell, s)
	}
	if c.system.Mode == "start" || slices.Contains(c.e.Allow, "write") {
		// Else the system has its own objects, and their sizes are not known here.
		c.copy(reflect.ValueOf(&cell.Data).Elem(), reflect.ValueOf(c.e.Data), "data.")
	}
	switch {
	case c.e.Scenario == "overhead" && c.e.Overhead != nil:
		o := &ResolvedOverhead{}
		cell.Overhead = o
		c.copy(reflect.ValueOf(o).Elem(), reflect.ValueOf(*c.e.Overhead), "overhead.")
		if err := c.override(reflect.ValueOf(o).Elem(), reflect.TypeFor[Overhead]()); err != nil {
			return err
		}
		return c.checkOverhead(cell, o)
	case c.e.Scenario == "upload" && c.e.Upload != nil:
		u := &ResolvedUpload{}
		cell.Upload = u
		c.copy(reflect.ValueOf(u).Elem(), reflect.ValueOf(*c.e.Upload), "upload.")
		return c.override(reflect.ValueOf(u).Elem(), reflect.TypeFor[Upload]())
	case c.e.Scenario == "collect" && c.e.Collect != nil:
		collect := *c.e.Collect
		cell.Collect = &collect
		return nil
	case c.e.Scenario == "disseminate" && c.e.Disseminate != nil:
		d := &ResolvedDisseminate{}
		cell.Disseminate = d
		c.copy(reflect.ValueOf(d).Elem(), reflect.ValueOf(*c.e.Disseminate), "disseminate.")
		return c.checkDisseminate(cell, d)
	case c.e.Scenario != "retrieve" || c.e.Retrieve == nil:
		return nil
	}
	r := &ResolvedRetrieve{}
	cell.Retrieve = r
	c.copy(reflect.ValueOf(r).Elem(), reflect.ValueOf(*c.e.Retrieve), "retrieve.")
	if err := c.override(reflect.ValueOf(r).Elem(), reflect.TypeFor[Retrieve]()); err != nil {
		return err
	}
	return c.checkRetrieve(cell, r)
}

// copy fills dst, a struct of single values, from src, its struct of axes.
func (c *combination) copy(dst, src reflect.Value, prefix string) {
	for _, f := range tableOf(src.Type()).fields {
		from, to := src.Field(f.index), dst.FieldByName(src.Type().Field(f.index).Name)
		switch {
		case !to.IsValid() || f.typ.Kind() == reflect.Map:
			// It is the whole plan's, or the caller's.
		case f.axis:
			if v, ok := c.value(prefix + f.key); ok != nil {
				to.Set(v)
			}
		case f.typ.Kind() == reflect.Pointer:
			if !from.IsNil() {
				to.Set(reflect.New(to.Type().Elem()))
				c.copy(to.Elem(), from.Elem(), prefix+f.key+".")
			}
		default:
			to.Set(from)
		}
	}
}

// override applies the settings that are the system's own.
func (c *combination) override(dst reflect.Value, section reflect.Type) *cellError {
	tab := tableOf(section)
	for key, text := range c.system.Override {
		f := tab.field(key)
		if f == nil || !f.axis {
			return &cellError{msg: fmt.Sprintf("system %s: `%s` cannot be overridden", c.system.Name, key)}
		}
		if err := f.parse(text, dst.FieldByName(section.Field(f.index).Name)); err != nil {
			return &cellError{msg: fmt.Sprintf("system %s: override `%s`: %v", c.system.Name, key, err)}
		}
	}
	return nil
}

// checkRetrieve refuses cells that cannot be executed, and turns a bound in
// bytes into one in requests where sizes are known.
func (c *combination) checkRetrieve(cell *Cell, r *ResolvedRetrieve) *cellError {
	size := int64(cell.Data.Size)
	if size > 0 && int64(r.Range) > size {
		return c.fault(rangePath, fmt.Sprintf("impossible cell (%s): a range of %s does not fit into an object of %s", c.name(), r.Range, cell.Data.Size),
			"make the objects larger, or leave the cell out with `where: [\"retrieve.range <= data.size\"]`")
	}
	if r.Receive == "drop" && r.HTTP == "2" {
		return c.fault("retrieve.receive", fmt.Sprintf("impossible cell (%s): receive: drop works on plain HTTP/1.1 only, not with http: \"2\"", c.name()), "use receive: verify, or http: auto")
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
func requestBytes(d ResolvedData, r *ResolvedRetrieve) int64 {
	if r.Range != Whole {
		return int64(r.Range)
	}
	return int64(d.Size)
}

func (c *combination) fault(path, msg, hint string) *cellError {
	err := &cellError{path: path, index: -1, msg: msg, hint: hint}
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
	paths, order := e.wherePaths(e.dropped)
	var conditions []condition
	for _, src := range e.Where {
		c, err := compileWhere(src, paths, order)
		if err != nil {
			return nil, fmt.Errorf("where: %q: %w", src, err)
		}
		conditions = append(conditions, c)
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
	p.Experiment.dropped = nil
	p.estimate()
	if len(p.Cells) == 0 {
		return nil, fmt.Errorf("no cell is left: in all of them one operation is expected to take longer than overhead.longest (%s)", e.Overhead.Longest)
	}
	return p.seal()
}
