package experiment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Parse reads an experiment file. name is for messages; set are "key=value" arguments that change
// the file before it is checked. A non-nil error has type [Errors], in the order of the file: all
// mistakes in single values or, if there are none, all mistakes between values.
func Parse(name string, src []byte, set []string, cat Catalog) (*Experiment, error) {
	return ParseKnowing(name, src, set, cat, Known{})
}

// Known holds names that a file may use but that are not part of the format. Nil fields are
// unknown, and not checked.
type Known struct {
	Metrics       func(scenario string) []gate.Metric // that a gate may use
	Preconditions []string                            // that can be skipped
}

// ParseKnowing works like [Parse], and also refuses names that are not in known.
func ParseKnowing(name string, src []byte, set []string, cat Catalog, known Known) (*Experiment, error) {
	src = bytes.TrimPrefix(src, []byte("\uFEFF")) // a byte order mark
	root, errs := parseYAML(name, src, true)
	switch {
	case errs != nil:
		return nil, errs.sorted()
	case root == nil || root.kind == nullNode:
		return nil, Errors{{File: name, Message: "the file is empty",
			Hint: "begin with `scenario: retrieve`; `plimsoll presets` shows complete files"}}
	}
	d := &decoder{cat: cat, known: known, at: map[string]*node{"": root}, factors: map[string]json.RawMessage{}}
	if root.kind == mappingNode {
		d.applySets(root, set)
		root.loadTest()
	}
	e := &Experiment{}
	d.section(root, reflect.ValueOf(e).Elem(), "")
	e.Dropped, e.Factors = d.dropped, d.factors
	d.systems(e)
	for _, check := range []func(*Experiment){d.combined, d.vary, d.check, d.cells} {
		check(e)
		if len(d.errs) > 0 {
			return nil, d.errs.sorted()
		}
	}
	return e, nil
}

// decoder fills an Experiment from nodes according to the struct tags. It continues after errors,
// to report all of them.
type decoder struct {
	cat     Catalog
	known   Known
	errs    Errors
	at      map[string]*node // the value given for a path; list elements have [i]
	dropped []string         // systems that --set removed
	factors map[string]json.RawMessage
	owners  map[string]string // the factor of sync.vary that each option belongs to
}

// fail reports a mistake at the value of a path or, if no value was given, at the nearest enclosing
// one.
func (d *decoder) fail(path, hint, format string, args ...any) {
	for d.at[path] == nil {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	d.errs = append(d.errs, d.at[path].errorf(hint, format, args...))
}

// wrong reports err, if not nil, as a mistake in the value of a path.
func (d *decoder) wrong(path string, err error) {
	if err != nil {
		m, above := err.(*Error), path[:max(0, strings.LastIndex(path, "."))]
		if n := d.at[above]; n != nil && n.kind == scalarNode { // in its short form
			path = above
		}
		d.fail(path, m.Hint, "%s: %s", called(path), m.Message)
	}
}

func join(prefix, key string) string { return strings.TrimPrefix(prefix+"."+key, ".") }

// called formats a path for messages, without a final index: the position of the message identifies
// the entry of a list.
func called(path string) string {
	if strings.HasSuffix(path, "]") {
		path = path[:strings.LastIndex(path, "[")]
	}
	if path == "" {
		return "the file"
	}
	return "`" + path + "`"
}

// Error is one mistake in an experiment file or in a --set argument. It quotes no line of the file,
// because options of systems may be secrets.
type Error struct {
	File    string // "boost.yaml", or "--set link.rate"
	Line    int    // 1-based; 0 if the mistake has no position in the file
	Column  int    // 1-based, in characters
	Message string
	Hint    string // what to do about it; may be empty
	path    string // of the wrong key, if the position is not known yet
}

// Error returns the position, the message and the hint.
func (e *Error) Error() string {
	text := e.Message
	if e.Hint != "" {
		text += "\n      hint: " + e.Hint
	}
	switch {
	case e.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, text)
	case e.File != "":
		return e.File + ": " + text
	}
	return text
}

// mistake returns an error without a position, which the caller adds.
func mistake(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Errors are all mistakes found, in the order of the file, followed by those from --set.
type Errors []*Error

func (es Errors) Error() string {
	return strings.Join(each(es, (*Error).Error), "\n")
}

// sorted sorts the errors by position and removes duplicates.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		// line 0 becomes the largest
		return cmp.Or(cmp.Compare(uint(a.Line-1), uint(b.Line-1)), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(es, func(a, b *Error) bool { return *a == *b })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// examples holds the hints for missing keys at the top of a file.
var examples = map[string]string{"scenario": "add `scenario: retrieve`, or another scenario",
	"systems": "add `systems: [static]`, or others that plimsoll systems lists"}

// section decodes the mapping n into the struct v.
func (d *decoder) section(n *node, v reflect.Value, path string) {
	tab := tableOf(v.Type())
	if tab.short != "" {
		n = n.shortFor(tab.short)
	}
	if n.kind != mappingNode {
		d.fail(path, "its keys: "+strings.Join(tab.keys(), ", "), "%s must be a mapping, not %s", called(path), n.kind)
		return
	}
	unknown := false
	for _, e := range n.entries {
		if f := tab.field(e.key.text); f == nil {
			unknown = true
			d.errs = append(d.errs, e.key.errorf(unknownKeyHint(e.key.text, tab), "unknown key `%s` in %s",
				e.key.text, called(path)))
		} else if p := join(path, f.key); f.label != "" {
			d.levels(e.value, v.Field(f.index), *f, p)
		} else {
			d.value(e.value, v.Field(f.index), *f, p)
		}
	}
	for _, f := range tab.fields {
		if n.get(f.key) == nil {
			d.setDefault(v.Field(f.index), f)
			if f.required {
				d.fail(path, cmp.Or(examples[join(path, f.key)], f.doc), "missing key `%s` in %s", f.key, called(path))
			}
		}
	}
	if !unknown { // otherwise a key that seems to be missing may be a misspelt one
		d.together(n, tab, path)
	}
}

// together checks which keys of the mapping n require or exclude each other.
func (d *decoder) together(n *node, tab table, path string) {
	var one []string
	given := 0
	for _, f := range tab.fields {
		is := n.get(f.key) != nil
		for _, other := range f.needs {
			if is && n.get(other) == nil {
				d.fail(join(path, f.key), "add it, or take `"+f.key+"` away", "`%s` has no meaning without `%s`", f.key,
					other)
			}
		}
		if f.one {
			one = append(one, f.key)
			given += boolInt(is)
		}
	}
	if one != nil && given != 1 {
		d.fail(path, "", "%s needs exactly one of %s", called(path), strings.Join(one, ", "))
	}
}

func unknownKeyHint(key string, tab table) string {
	if key == "rtt" && slices.ContainsFunc(tab.fields, func(f field) bool { return f.key == "delay" }) {
		return "`delay` is one way: half of the round trip"
	}
	elsewhere := ""
	walk(reflect.TypeFor[Experiment](), "", func(path string, _ field) {
		if section, is := strings.CutSuffix(path, "."+key); is && elsewhere == "" {
			elsewhere = "`" + key + "` belongs under `" + section + "`"
		}
	})
	if elsewhere != "" && suggest.Nearest(key, tab.keys()) == "" {
		return elsewhere
	}
	return suggest.DidYouMean(key, tab.keys())
}

// checked is a value that checks the relations between its keys.
type checked interface{ check() error }

// value decodes one value and reports whether it is valid.
func (d *decoder) value(n *node, v reflect.Value, f field, path string) bool {
	d.at[path] = n
	failed := len(d.errs)
	switch {
	case n.kind == nullNode:
		d.fail(path, "give it one, or take the key away", "%s has no value", called(path))
	case f.zero != "" && n.kind == scalarNode && n.text == f.zero:
		v.SetZero()
		return true
	case f.typ.Kind() == reflect.Map:
		if n.kind != mappingNode { // its entries are decoded once the system is known
			d.fail(path, "write `key: value` lines below it", "%s must be a mapping, not %s", called(path), n.kind)
		}
	case f.list():
		el := f
		el.typ, el.zero = f.typ.Elem(), ""
		for i, item := range elements(n, f) {
			one := reflect.New(el.typ).Elem()
			d.value(item, one, el, fmt.Sprintf("%s[%d]", path, i))
			v.Set(reflect.Append(v, one))
		}
	case f.section() == nil && n.kind == scalarNode:
		d.wrong(path, f.parse(n.text, v))
	case f.section() == nil:
		d.fail(path, "", "%s must be %s, not %s", called(path), f.noun(), n.kind)
	default:
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(f.typ.Elem()))
			v = v.Elem()
		}
		d.section(n, v, path)
	}
	if len(d.errs) > failed {
		return false
	}
	if c, is := v.Addr().Interface().(checked); is {
		d.wrong(path, c.check())
	}
	return len(d.errs) == failed
}

// elements returns the entries of the list n; a single value is a list of one. A --set value is
// split at commas.
func elements(n *node, f field) []*node {
	switch {
	case n.kind == listNode:
		return n.items
	case !n.split || f.noSplit:
		return []*node{n}
	}
	return each(strings.Split(n.text, ","), func(text string) *node { return n.scalar(strings.TrimSpace(text)) })
}

// levels decodes a key that may be a factor: one value, or a list of different ones. Values that
// are themselves lists of mappings are written as a list of such lists; a single one needs no outer
// list.
func (d *decoder) levels(n *node, v reflect.Value, f field, path string) {
	d.at[path] = n
	items := elements(n, f)
	if f.list() && n.kind == listNode && !slices.ContainsFunc(items,
		func(item *node) bool { return item.kind != mappingNode }) {
		items = []*node{n}
	}
	values, seen := reflect.MakeSlice(reflect.SliceOf(f.typ), 0, 1), map[string]bool{}
	for i, item := range items {
		value, p := reflect.New(f.typ).Elem(), fmt.Sprintf("%s[%d]", path, i)
		if !d.value(item, value, f, p) {
			continue
		}
		if text := f.text(value); seen[text] {
			d.fail(p, "a factor has each of its levels once", "%s has the value %s twice", called(path), text)
		} else {
			seen[text] = true
			values = reflect.Append(values, value)
		}
	}
	switch {
	case len(items) == 0:
		d.fail(path, "give at least one value, or take the key away", "%s is an empty list", called(path))
	case values.Len() > 1:
		d.factors[path], _ = json.Marshal(values.Interface()) // all types of the format can be marshalled
		fallthrough
	case values.Len() == 1:
		v.Set(values.Index(0))
	}
}

// noun returns a phrase for the values that f accepts, for errors.
func (f *field) noun() string {
	noun := f.kind().noun
	if f.enum != nil {
		noun = "one of " + strings.Join(f.enum, ", ")
	}
	return f.orZero(noun)
}

// parse reads the text of one value into v and checks its limits.
func (f *field) parse(text string, v reflect.Value) error {
	switch {
	case f.zero != "" && text == f.zero:
		v.SetZero()
		return nil
	case f.enum != nil && !slices.Contains(f.enum, text):
		return mistake(suggest.DidYouMean(text, f.enum), "%q is not one of %s", text, strings.Join(f.enum, ", "))
	}
	if err := f.parsePlain(text, v); err != nil {
		m := err.(*Error)
		if m.Hint == "" && f.zero != "" {
			m.Hint = f.orZero("a value with its unit")
		}
		m.Hint = strings.Replace(m.Hint, "at most 100%", "at most "+cmp.Or(f.max, "100%"), 1)
		return err
	}
	return f.within(text, v)
}

// within returns an error if a value is outside the limits of f.
func (f *field) within(text string, v reflect.Value) error {
	n, hint := number(v), ""
	switch {
	case f.min != "" && n < number(f.constant(f.min)):
		hint = "at least " + f.min
	case f.max != "" && n > number(f.constant(f.max)):
		hint = "at most " + f.max
	case f.zero != "" && n == 0:
		hint = "a value above 0"
	default:
		return nil
	}
	return mistake(f.orZero(hint), "%s is out of limits", text)
}

// orZero appends the word for the zero value, if f has one.
func (f *field) orZero(text string) string {
	if f.zero != "" {
		text += ", or " + f.zero
	}
	return text
}

// constant returns the value of a text that is in a tag of f or was read before.
func (f *field) constant(text string) reflect.Value {
	v := reflect.New(f.typ).Elem()
	if f.zero == "" || text != f.zero {
		if err := f.parsePlain(text, v); err != nil {
			panic(fmt.Sprintf("experiment: key %q: %q: %v", f.key, text, err))
		}
	}
	return v
}

func (f *field) parsePlain(text string, v reflect.Value) error {
	if s, ok := v.Addr().Interface().(scalar); ok {
		return s.parse(text)
	}
	if v.Kind() == reflect.String {
		v.SetString(strings.TrimSpace(text))
		return nil
	}
	if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil || text == "null" {
		return notA(f.typ.Name(), text, "")
	}
	return nil
}

// number returns the value of v in its base unit; 0 for words.
func number(v reflect.Value) float64 {
	if d, ok := v.Interface().(Duration); ok {
		return d.Seconds()
	}
	if to := reflect.TypeFor[float64](); v.CanConvert(to) {
		return v.Convert(to).Float()
	}
	return 0
}

// text returns the canonical text of one value of f.
func (f *field) text(v reflect.Value) string {
	if f.zero != "" && v.IsZero() {
		return f.zero
	}
	return fmt.Sprint(v.Interface())
}

// setDefault sets a field whose key is missing to its default.
func (d *decoder) setDefault(v reflect.Value, f field) {
	switch {
	case f.def != "":
		v.Set(f.constant(f.def))
	case f.typ.Kind() == reflect.Struct && f.section() != nil && f.zero == "":
		for _, sub := range tableOf(f.typ).fields {
			d.setDefault(v.Field(sub.index), sub)
		}
	}
}
