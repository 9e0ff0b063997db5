package experiment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Limits of a plan. A file that exceeds them is refused as a mistake.
const (
	maxCombinations = 100_000 // before `where`
	maxTrials       = 100_000
	maxSyncCells    = 64 // of a full factorial of knobs and conditions
)

// axis is a key that may be a factor.
type axis struct {
	path   string
	field  field
	levels []reflect.Value // empty if no value was given and there is no default
}

// axes lists the axes of the experiment: the system, then the others in the order of the
// format, so that the plan does not depend on the order of keys in a file.
func (e *Experiment) axes() []axis {
	system := axis{path: systemPath, field: field{key: systemPath, label: systemPath, typ: reflect.TypeFor[string](),
		enum: append(e.SystemNames(), e.Dropped...)}}
	system.levels = each(e.SystemNames(), system.field.constant)
	all := []axis{system}
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		v := cellField(reflect.ValueOf(e), path)
		switch {
		case v.IsValid() && path == varyPath:
			for _, name := range sortedKeys(e.Sync.Vary) { // the order of keys in a file does not matter
				all = append(all, e.Sync.Vary[name].axis(name))
			}
		case v.IsValid() && f.label != "":
			all = append(all, axis{path, f, e.levels(path, f, v)})
		}
	})
	return all
}

// levels returns the levels of the key f at path; v is one of them.
func (e *Experiment) levels(path string, f field, v reflect.Value) (levels []reflect.Value) {
	given := reflect.New(reflect.SliceOf(f.typ))
	switch {
	case json.Unmarshal(e.Factors[path], given.Interface()) == nil: // an error: it is no factor
		for _, level := range given.Elem().Seq2() {
			levels = append(levels, level)
		}
	case !v.IsZero() || f.zero != "" || f.def != "" && (f.min == "" || f.min == "0"):
		levels = []reflect.Value{v}
	}
	return levels
}

// combination is one choice of levels, before `where`.
type combination struct {
	e      *Experiment
	axes   []axis
	levels []int // index into each axis; -1 for an empty one
	system *SystemUse
}

// level returns the level of a factor, for conditions.
func (c *combination) level(path string) gate.Level {
	i := slices.IndexFunc(c.axes, func(a axis) bool { return a.path == path })
	switch {
	case i >= 0 && c.levels[i] >= 0:
		level := c.axes[i].levels[c.levels[i]]
		l := levelOf(c.axes[i].field, level)
		if path == rangePath && level.IsZero() { // the whole object
			l.Number = c.level(dataSizePath).Number
		}
		return l
	case path == dataSizePath:
		return gate.Level{Number: math.Inf(1)} // unknown: assume that it is large enough
	}
	return gate.Level{Number: math.NaN()}
}

// name describes the combination by its factors, for errors.
func (c *combination) name() string {
	parts := []string{c.system.Name}
	for i, a := range c.axes {
		if i > 0 && len(a.levels) > 1 && c.levels[i] >= 0 {
			parts = append(parts, a.field.label+" "+a.field.text(a.levels[c.levels[i]]))
		}
	}
	return strings.Join(parts, ", ")
}

// expand returns the cells: the product of all levels and systems, without the combinations that
// `where` excludes. The system varies fastest, so that cells to be compared are adjacent. The errors
// are those of `where`, or all impossible cells.
func (e *Experiment) expand() ([]Cell, Errors) {
	conditions, bad := e.conditions()
	if bad != nil {
		return nil, bad
	}
	axes := e.axes()
	longest := slices.MaxFunc(axes[1:], func(a, b axis) int { return cmp.Compare(len(a.levels), len(b.levels)) })
	total := float64(len(e.Systems))
	for _, a := range axes[1:] {
		total *= float64(max(1, len(a.levels)))
	}
	refuse := func(path, hint, format string, args ...any) ([]Cell, Errors) {
		return nil, Errors{{Message: fmt.Sprintf(format, args...), Hint: hint, path: path}}
	}
	const hint = "shorten the lists, narrow them with `where`, or make several experiments"
	if total > maxCombinations {
		return refuse(longest.path, hint, "%.0f combinations of the factors; at most %d are possible", total,
			maxCombinations)
	}
	var combos []combination
	seen := map[string]bool{}
	for k := range int(total) {
		system, rest := k%len(e.Systems), k/len(e.Systems)
		c := combination{e: e, axes: axes, levels: make([]int, len(axes)), system: &e.Systems[system]}
		for i, a := range slices.Backward(axes) {
			n := len(a.levels)
			c.levels[i] = rest%max(1, n) - boolInt(n == 0) // -1 for an empty axis
			rest /= max(1, n)
		}
		c.levels[0] = system
		if slices.ContainsFunc(conditions, func(keep gate.Condition) bool { return !keep(c.level) }) {
			continue
		}
		c.apply()
		if key := fmt.Sprint(c.levels); !seen[key] {
			seen[key] = true
			combos = append(combos, c)
		}
	}
	count, blocks := len(combos), e.Repetitions.Max+e.Warmup.Trials
	switch {
	case count == 0:
		return refuse("where", "", "no cell is left: `where` excludes every combination of the factors")
	case e.Scenario == "sync" && count > maxSyncCells:
		return refuse(longest.path, hint, "%d cells; a sync can have %d", count, maxSyncCells)
	case count*blocks > maxTrials:
		return refuse(longest.path, hint, "%d trials (%s × %d repetitions, warm-up included); at most %d are possible",
			count*blocks, plural(count, "cell"), blocks, maxTrials)
	}
	return e.cells(combos)
}

// ownLevel is the level of an axis that does not apply because the system has its own link or
// objects.
const ownLevel = "own"

// apply sets the levels that do not apply to the combination's system to -1. An attached system is
// reached over the existing network, and has its own objects unless it may be written to.
func (c *combination) apply() {
	for i, a := range c.axes {
		section, _, _ := strings.Cut(a.path, ".")
		if c.system.Attached() && (section == "link" || section == "data" && !c.e.Allows("write")) {
			c.levels[i] = -1
		}
	}
}

func (e *Experiment) cells(combos []combination) ([]Cell, Errors) {
	varies := varying(combos)
	width := max(3, len(fmt.Sprint(len(combos))))
	var cells []Cell
	var bad Errors
	for i := range combos {
		c := &combos[i]
		cell := Cell{ID: fmt.Sprintf("c%0*d", width, i+1), System: c.system.Name, Baseline: c.system.Baseline}
		for k, a := range c.axes {
			f := Factor{Path: a.path, Label: a.field.label, Value: ownLevel}
			if varies[k] && c.levels[k] >= 0 {
				l := levelOf(a.field, a.levels[c.levels[k]])
				f.Value = l.Text
				if !math.IsNaN(l.Number) && !math.IsInf(l.Number, 0) {
					f.Number, f.Unit = l.Number, a.field.kind().unit
				}
			}
			if varies[k] {
				cell.Factors = append(cell.Factors, f)
			}
		}
		if err := c.resolve(&cell); err != nil {
			bad = append(bad, err)
			continue
		}
		cell.Estimate = e.estimateCell(&cell)
		cells = append(cells, cell)
	}
	return cells, bad
}

// varying reports which axes are factors of the plan: those with several levels. If nothing else
// distinguishes systems with their own link or objects from the others, one axis with a single
// level other than zero is added.
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
		varies[i] = len(levels) > 1 || a.path == systemPath
		section, _, _ := strings.Cut(a.path, ".")
		apart[section] = apart[section] || varies[i]
	}
	for i, a := range axes {
		section, _, _ := strings.Cut(a.path, ".")
		if own[i] && !apart[section] && !a.levels[0].IsZero() {
			varies[i], apart[section] = true, true
		}
	}
	return varies
}

// resolve fills in the cell's values, one for each field, and checks that they are possible
// together.
func (c *combination) resolve(cell *Cell) *Error {
	cell.Link = c.e.Link
	if c.e.Scenario != "sync" && (!c.system.Attached() || c.e.Allows("write")) {
		// Otherwise the system has its own objects, whose sizes are not known here.
		cell.Data = c.e.Data
	}
	at := func(path string) reflect.Value { return cellField(reflect.ValueOf(cell).Elem(), path) }
	section := reflect.New(c.e.section().Type())
	section.Elem().Set(c.e.section())
	at(c.e.Scenario).Set(section)
	if r := cell.Retrieve; r != nil && r.Arrivals != nil {
		r.Arrivals = new(*r.Arrivals)
	}
	for i, a := range c.axes {
		if v := at(a.path); v.IsValid() && c.levels[i] >= 0 {
			v.Set(a.levels[c.levels[i]])
		} else if v.IsValid() {
			v.SetZero()
		}
	}
	if err := c.checkLinkAndData(cell); err != nil {
		return err
	}
	for key, text := range c.system.Override {
		at(c.e.Scenario + "." + key).Set(tableOf(c.e.section().Type()).field(key).constant(text))
	}
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

// checkLinkAndData returns an error for a cell of any scenario that cannot be executed.
func (c *combination) checkLinkAndData(cell *Cell) *Error {
	l := cell.Link
	_, bytes := cell.Data.Total()
	switch {
	case bytes > maxTotal:
		return c.impossible("data."+cell.Data.Source(), "at most 4 EiB (4,611 PB) in all",
			"%s is more than a data set can have", words.Bytes(bytes))
	case l.Emulator == "none" && (l.Shaped() || cell.ChangesLinks()):
		return c.impossible("link.emulator", "let the emulator be auto", "its links need an emulator")
	case l.Regions != nil && l.Delay > 0:
		return c.impossible("link.delay", "take one of them away", "`link.regions` replaces the delay of %s", l.Delay)
	case l.Jitter > l.Delay && l.Regions == nil:
		return c.impossible("link.jitter", "make `link.delay` as large as `link.jitter`",
			"a delay of %s cannot vary by %s to either side", l.Delay, l.Jitter)
	}
	return nil
}

// cellField returns the field of a struct at a path of the format; it is invalid if there is none.
func cellField(v reflect.Value, path string) reflect.Value {
	for key := range strings.SplitSeq(path, ".") {
		v = reflect.Indirect(v)
		if v.Kind() != reflect.Struct {
			return reflect.Value{}
		}
		f := tableOf(v.Type()).field(key)
		if f == nil {
			return reflect.Value{}
		}
		v = v.Field(f.index)
	}
	return v
}

// impossible returns the error for a cell that cannot be executed because of the key at path.
func (c *combination) impossible(path, hint, format string, args ...any) *Error {
	err := &Error{path: path, Message: "impossible cell (" + c.name() + "): " + fmt.Sprintf(format, args...),
		Hint: hint + ", or leave the cell out with `where`"}
	for i, a := range c.axes {
		if a.path == path {
			err.path = fmt.Sprintf("%s[%d]", path, c.levels[i])
		}
	}
	return err
}

// Plan expands the experiment: all cells, the estimate and the hash.
func (e *Experiment) Plan() (*Plan, error) {
	cells, bad := e.expand()
	if bad != nil {
		return nil, bad
	}
	p := &Plan{Format: PlanFormat, Experiment: *e, Cells: cells, Warmup: e.Warmup.Trials, Blocks: e.Repetitions.Max}
	p.Experiment.Dropped = slices.DeleteFunc(slices.Clone(e.Dropped), func(system string) bool {
		return !slices.ContainsFunc(e.Gates, func(rule string) bool { return strings.Contains(rule, system) })
	})
	p.estimate()
	return p.seal()
}

const (
	dataSizePath = "data.size"
	rangePath    = "retrieve.range"
)

// factors returns the factors that conditions may name: the system, and all axes.
func (e *Experiment) factors() []gate.Factor {
	var all []gate.Factor
	for _, a := range e.axes() {
		f, k := a.compared(), a.field.kind()
		all = append(all, gate.Factor{Path: a.path, Noun: k.noun, Unit: k.unit,
			Read: func(text string) (gate.Level, error) {
				v := reflect.New(f.typ).Elem()
				if err := f.parse(text, v); err != nil {
					wrong := err.(*Error)
					return gate.Level{}, &gate.Error{Msg: wrong.Message, Fix: wrong.Hint}
				}
				return levelOf(f, v), nil
			}})
	}
	return all
}

// conditions parses `where`.
func (e *Experiment) conditions() (all []gate.Condition, bad Errors) {
	factors := e.factors()
	for i, src := range e.Where {
		c, err := gate.ParseCondition(src, factors)
		bad = append(bad, expression("where", i, err)...)
		all = append(all, c)
	}
	return all, bad
}

// expression returns the mistake in a text of a list, if err is not nil.
func expression(list string, i int, err error) Errors {
	if err == nil {
		return nil
	}
	return Errors{{Message: err.Error(), Hint: err.(*gate.Error).Fix, path: fmt.Sprintf("%s[%d]", list, i)}}
}

// compared returns the field that parses values of the factor in a condition.
func (a axis) compared() field {
	f := a.field
	f.min, f.max = "", ""
	if f.compound() {
		f.typ, f.zero = reflect.TypeFor[string](), ""
		f.enum = append([]string{a.field.zero}, each(a.levels, a.field.text)...)
	}
	return f
}

// levelOf returns the level of a value of f. Words for no limit (unlimited) are above every number;
// words that leave a choice (auto) have no order.
func levelOf(f field, v reflect.Value) gate.Level {
	l := gate.Level{Text: f.text(v), Number: number(v)}
	switch {
	case f.zero == "unlimited" && v.IsZero():
		l.Number = math.Inf(1)
	case v.Kind() == reflect.String || f.kind().unit == "" || f.zero != "" && v.IsZero():
		l.Number = math.NaN()
	}
	return l
}
