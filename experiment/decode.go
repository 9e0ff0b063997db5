package experiment

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// decoder fills an Experiment from nodes, following the struct tags. It never
// stops at an error.
type decoder struct {
	cat     Catalog
	known   Known
	errs    Errors
	at      map[string]*node // the value given for a path; list elements have [i]
	bad     map[string]bool  // paths whose value could not be read
	dropped []string         // systems that --set took out
	factors map[string]json.RawMessage
}

func (d *decoder) fail(path string, n *node, hint, format string, args ...any) {
	d.errs = append(d.errs, n.errorf(hint, format, args...))
	d.bad[path] = true
}

// ok reports whether every one of the paths, and what is under them, was read
// without an error: checks between values look at nothing else.
func (d *decoder) ok(paths ...string) bool {
	for bad := range d.bad {
		for _, p := range paths {
			if bad == p || strings.HasPrefix(bad, p+".") || strings.HasPrefix(bad, p+"[") {
				return false
			}
		}
	}
	return true
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// section decodes the mapping n into the struct v. owner is what an error
// about a missing key points at.
func (d *decoder) section(n, owner *node, v reflect.Value, path string) {
	tab := tableOf(v.Type())
	if n.kind == scalarNode && tab.short != nil {
		n = expandShort(n, tab)
		for _, e := range n.entries {
			e.value.shortOf = path
		}
	}
	if n.kind != mappingNode {
		hint := "write `key: value` lines below it"
		if path != "" {
			hint += "; its keys: " + strings.Join(tab.keys(), ", ")
		}
		if tab.short != nil {
			hint = "or a single value, short for `" + strings.Join(tab.short, "` and `") + "`"
		}
		d.fail(path, n, hint, "%s must be a mapping, not %s", called(path), n.kind)
		return
	}
	for _, e := range n.entries {
		f := tab.field(e.key.text)
		if f == nil {
			e.key.src.hide(e.key.line, len(e.key.src.lines)) // where its value ends is not known
			d.errs = append(d.errs, e.key.errorf(unknownKeyHint(e.key.text, path, tab), "unknown key `%s`%s",
				e.key.text, within(path)))
			if path != "" { // what seems to be missing may be what is misspelt
				d.bad[join(path, e.key.text)] = true
			}
			continue
		}
		p := join(path, f.key)
		d.at[p] = e.value
		switch e.value.kind {
		case nullNode:
			d.fail(p, e.value, "give it one, or take the key away", "%s has no value", called(p))
			continue
		case badNode:
			d.bad[p] = true
			continue
		}
		if f.axis {
			d.axis(e.value, e.key, v.Field(f.index), *f, p)
		} else {
			d.value(e.value, e.key, v.Field(f.index), *f, p)
		}
	}
	for _, f := range tab.fields {
		if n.get(f.key) != nil {
			continue
		}
		p := join(path, f.key)
		if f.required {
			d.fail(p, owner, f.doc(), "missing key `%s`%s", f.key, within(path))
		}
		d.setDefault(v.Field(f.index), f)
	}
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + called(path)
}

// called is a path as messages have it.
func called(path string) string {
	if path == "" {
		return "the file"
	}
	return "`" + path + "`"
}

// expandShort is the mapping that a bare value is short for.
func expandShort(n *node, tab table) *node {
	m := *n
	m.kind = mappingNode
	for _, key := range tab.short {
		k, value := *n, *n // copies: set overwrites n with the mapping
		k.text = key
		m.entries = append(m.entries, entry{&k, &value})
	}
	return &m
}

func unknownKeyHint(key, path string, tab table) string {
	if c := suggest.Nearest(key, tab.keys()); c != "" {
		return "did you mean `" + c + "`?"
	}
	for _, k := range Keys() {
		section, last := "", k.Path
		if i := strings.LastIndex(last, "."); i >= 0 {
			section, last = last[:i], last[i+1:]
		}
		switch {
		case last != key || section == path:
		case section == "":
			return "`" + key + "` belongs at the top level"
		default:
			return "`" + key + "` belongs under `" + section + "`"
		}
	}
	return suggest.DidYouMean(key, tab.keys())
}

// checked is a value with conditions between its keys.
type checked interface{ check() error }

func (d *decoder) value(n, key *node, v reflect.Value, f field, path string) {
	failed := len(d.errs)
	switch {
	case f.zero != "" && n.kind == scalarNode && n.text == f.zero:
		v.SetZero()
		return
	case f.typ.Kind() == reflect.Map:
		if n.kind != mappingNode { // what is in it is read once the system is known
			d.fail(path, n, "write `key: value` lines below it", "%s must be a mapping, not %s", called(path), n.kind)
		}
	case f.list():
		d.list(n, v, f, path)
	case f.section() == nil:
		d.scalar(n, v, f, path)
		return
	case f.typ.Kind() == reflect.Pointer:
		v.Set(reflect.New(f.typ.Elem()))
		d.section(n, key, v.Elem(), path)
	default:
		d.section(n, key, v, path)
	}
	if c, is := v.Addr().Interface().(checked); is && len(d.errs) == failed {
		d.unit(path, n, called(path), c.check())
	}
}

// unit fails with what is wrong with a value, if anything is.
func (d *decoder) unit(path string, n *node, name string, err error) {
	if err == nil {
		return
	}
	wrong := err.(*unitError)
	d.fail(path, n, wrong.hint, "%s: %s", name, wrong.msg)
}

// elements are the entries of the list n; a single value is a list of one. A --set
// value is split at its commas.
func elements(n *node, f field) []*node {
	if n.kind == listNode {
		return n.items
	}
	if n.kind != scalarNode || !n.src.set || n.inner != 0 || f.noSplit {
		return []*node{n}
	}
	var parts []*node
	column := n.column
	for text := range strings.SplitSeq(n.text, ",") {
		part := *n
		part.text, part.column, part.width = strings.TrimSpace(text), column, max(1, len([]rune(text)))
		parts = append(parts, &part)
		column += len([]rune(text)) + 1
	}
	return parts
}

// levelNodes are the values of a key that may be a factor: n itself where it is one value.
// Values that are themselves lists of mappings are written as a list of such lists; one
// alone needs no list around it.
func levelNodes(n *node, f field) []*node {
	if f.list() && n.kind == listNode && !slices.ContainsFunc(n.items,
		func(item *node) bool { return item.kind != mappingNode }) {
		return []*node{n}
	}
	return elements(n, f)
}

// axis decodes a key that may be a factor.
func (d *decoder) axis(n, key *node, v reflect.Value, f field, path string) {
	values := d.levels(n, key, f, path)
	if values.Len() > 0 {
		v.Set(values.Index(0))
	}
	if values.Len() > 1 {
		d.factors[path], _ = json.Marshal(values.Interface()) // all types of the format are written
	}
}

// levels decodes a value, or a list of different ones.
func (d *decoder) levels(n, key *node, f field, path string) reflect.Value {
	values := reflect.MakeSlice(reflect.SliceOf(f.typ), 0, 1)
	switch {
	case n.kind == mappingNode && f.section() == nil:
		d.fail(path, n, "one value, or a list of values to make it a factor", "%s must be %s, not a mapping",
			called(path), f.noun())
		return values
	case n.kind == listNode && len(n.items) == 0:
		d.fail(path, n, "give at least one value, or take the key away", "%s is an empty list", called(path))
		return values
	}
	seen := map[string]bool{}
	for i, item := range levelNodes(n, f) {
		p := fmt.Sprintf("%s[%d]", path, i)
		d.at[p] = item
		value := reflect.New(f.typ).Elem()
		failed := len(d.errs)
		if d.value(item, key, value, f, p); len(d.errs) > failed || d.bad[p] {
			continue
		}
		text := f.text(value)
		if seen[text] {
			d.fail(p, item, "a factor has each of its levels once", "%s has the value %s twice", called(path), text)
			continue
		}
		seen[text] = true
		values = reflect.Append(values, value)
	}
	return values
}

func (d *decoder) list(n *node, v reflect.Value, f field, path string) {
	if n.kind == mappingNode && !f.axis {
		d.fail(path, n, "begin each entry with `- `", "%s must be a list, not a mapping", called(path))
		return
	}
	if n.kind == scalarNode && f.zero != "" && tableOf(f.section()).short == nil {
		d.fail(path, n, "", "%s must be a list, or `%s`", called(path), f.zero)
		return
	}
	el := f
	el.typ, el.element, el.zero = f.typ.Elem(), true, ""
	for i, item := range elements(n, f) {
		p := fmt.Sprintf("%s[%d]", path, i)
		d.at[p] = item
		value := reflect.New(el.typ).Elem()
		if item.kind == badNode {
			d.bad[p] = true
			continue
		}
		d.value(item, item, value, el, p)
		v.Set(reflect.Append(v, value))
	}
}

// scalar decodes one value and reports whether it could be read.
func (d *decoder) scalar(n *node, v reflect.Value, f field, path string) bool {
	name := called(path)
	switch {
	case n.shortOf != "":
		name = called(n.shortOf)
	case f.axis || f.element:
		// The caret says which of the values it is.
		if i := strings.LastIndex(path, "["); i >= 0 {
			name = "`" + path[:i] + "`"
		}
	}
	if n.kind == badNode {
		d.bad[path] = true
		return false
	}
	if n.kind != scalarNode {
		hint := ""
		if n.kind == listNode {
			hint = "it is not a factor: give one value"
		}
		d.fail(path, n, hint, "%s must be %s, not %s", name, f.noun(), n.kind)
		return false
	}
	err := f.parse(n.text, v)
	d.unit(path, n, name, err)
	return err == nil
}

// noun says what f wants, for an error.
func (f *field) noun() string {
	if f.enum != nil {
		return "one of " + strings.Join(f.enum, ", ")
	}
	noun := f.kind().noun
	if f.zero != "" {
		noun += ", or " + f.zero
	}
	return noun
}

// parse reads the text of one value into v and checks its limits.
func (f *field) parse(text string, v reflect.Value) error {
	if f.zero != "" && text == f.zero {
		v.SetZero()
		return nil
	}
	if f.enum != nil {
		if slices.Contains(f.enum, text) {
			v.SetString(text)
			return nil
		}
		hint := ""
		if c := suggest.Nearest(text, f.enum); c != "" {
			hint = "did you mean `" + c + "`?"
		}
		return badUnit(hint, "%q is not one of %s", text, strings.Join(f.enum, ", "))
	}
	if err := f.parsePlain(text, v); err != nil {
		if u, ok := err.(*unitError); ok && u.hint == "" && f.zero != "" {
			u.hint = "a value with its unit, or `" + f.zero + "`"
		}
		return err
	}
	return f.within(text, v)
}

// within refuses a value that is beyond the limits of f.
func (f *field) within(text string, v reflect.Value) error {
	for _, limit := range []struct {
		text, word string
		sign       float64
	}{{f.min, "at least", 1}, {f.max, "at most", -1}} {
		if limit.text == "" || v.Kind() == reflect.String {
			continue
		}
		bound := reflect.New(f.typ).Elem()
		if err := f.parsePlain(limit.text, bound); err != nil {
			panic(fmt.Sprintf("experiment: key %q: limit %q: %v", f.key, limit.text, err))
		}
		if (number(v)-number(bound))*limit.sign < 0 {
			hint := limit.word + " " + limit.text
			if _, share := v.Interface().(Fraction); share && !strings.HasSuffix(text, "%") {
				hint = "did you mean `" + text + "%`?"
			}
			if f.zero != "" {
				hint += ", or " + f.zero
			}
			return badUnit(hint, "%s is out of limits", text)
		}
	}
	if f.zero != "" && number(v) == 0 {
		return badUnit("write `"+f.zero+"`, or a value above 0", "0 is not allowed here")
	}
	return nil
}

func (f *field) parsePlain(text string, v reflect.Value) error {
	if s, ok := v.Addr().Interface().(scalar); ok {
		return s.parse(text)
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.TrimSpace(text))
	case reflect.Bool:
		if text != "true" && text != "false" { // YAML's older words, such as yes, are texts
			return badUnit("write `true` or `false`", "%q is not true or false", text)
		}
		v.SetBool(text == "true")
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return numberError(text)
		}
		v.SetUint(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if _, _, unit, ok := splitNumber(text); err != nil || !ok || unit != "" {
			return badUnit("", "%q is not a number", text)
		}
		v.SetFloat(n)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strings.HasPrefix(text, "+") {
			return numberError(text)
		}
		v.SetInt(n)
	}
	return nil
}

func numberError(text string) error {
	hint := "write it in digits, such as 1000"
	switch {
	case strings.HasPrefix(text, "-"):
		hint = "it cannot be negative"
	case isDigits(text):
		hint = "it is too large"
	}
	return badUnit(hint, "%q is not a whole number", text)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// number is the value of v in its base unit; 0 for words.
func number(v reflect.Value) float64 {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		if d, ok := v.Interface().(Duration); ok {
			return d.Seconds()
		}
		return float64(v.Int())
	case reflect.Uint64:
		return float64(v.Uint())
	case reflect.Float64:
		return v.Float()
	}
	return 0
}

// text is the canonical text of one value of f.
func (f *field) text(v reflect.Value) string {
	if f.zero != "" && v.IsZero() {
		return f.zero
	}
	return fmt.Sprint(v.Interface())
}

// setDefault fills a field whose key was not given.
func (d *decoder) setDefault(v reflect.Value, f field) {
	switch {
	case f.def != "":
		one := reflect.New(f.typ).Elem()
		if err := f.parse(f.def, one); err != nil {
			panic(fmt.Sprintf("experiment: key %q: default %q: %v", f.key, f.def, err))
		}
		v.Set(one)
	case f.typ.Kind() == reflect.Struct && f.section() != nil && f.zero == "":
		for _, sub := range tableOf(f.typ).fields {
			d.setDefault(v.Field(sub.index), sub)
		}
	}
}
