package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// applySets edits the file's nodes with the --set arguments, in order, before
// anything is checked: an unknown key is then reported like one in the file.
func (d *decoder) applySets(root *node, sets []string) {
	for _, arg := range sets {
		path, text, ok := strings.Cut(arg, "=")
		path = strings.TrimSpace(path)
		src := &source{name: "--set", lines: []string{arg}, set: true}
		at := &node{kind: scalarNode, src: src, line: 1, column: 1, width: len([]rune(arg)), text: arg}
		if top, _, _ := strings.Cut(path, "."); top == "systems" || strings.HasPrefix(path, varyPath) || !ok {
			src.hide(1, 1)
		}
		if ok {
			src.name += " " + path
		}
		if !ok || path == "" {
			d.errs = append(d.errs, at.errorf("write --set key=value, such as --set retrieve.concurrency=1,4",
				"not key=value"))
			continue
		}
		value, errs := setValue(src, text, len([]rune(arg))-len([]rune(text)))
		if errs != nil {
			d.errs = append(d.errs, errs...)
			continue
		}
		if list := root.get("systems"); path == "systems" && value != nil && value.kind == scalarNode && list != nil &&
			list.kind == listNode {
			d.chooseSystems(list, value)
			continue
		}
		d.set(root, reflect.TypeFor[Experiment](), strings.Split(path, "."), 1, edit{src, value})
	}
}

// setValue reads what is behind the equals sign: nil when nothing is, YAML
// when it begins like a list, a mapping or a quoted text, else plain text.
func setValue(src *source, text string, column int) (*node, Errors) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, nil
	}
	if !strings.ContainsAny(trimmed[:1], `[{"'`) {
		return &node{kind: scalarNode, text: trimmed, src: src, line: 1, column: column + 1, width: len([]rune(text))},
			nil
	}
	// With spaces for the key, so that columns are those of the argument.
	return parseYAML(src, []byte(strings.Repeat(" ", column)+text))
}

// edit is one --set argument on its way down the tree.
type edit struct {
	src   *source
	value *node // nil: take the key away
}

// set puts the value at parts under n, whose keys are those of t, or any when
// t is nil. Sections that are missing on the way are made. column is where
// parts begin in the argument.
func (d *decoder) set(n *node, t reflect.Type, parts []string, column int, ed edit) {
	part := parts[0]
	next := column + len([]rune(part)) + 1
	key := &node{kind: scalarNode, text: part, src: ed.src, line: 1, column: column, width: max(1, next-1-column)}
	if t == nil {
		// Options may have dots in their names: the rest is one key.
		key.text = strings.Join(parts, ".")
		key.width = max(1, len([]rune(key.text)))
		parts = parts[:1]
	} else if tab := tableOf(t); n.kind == scalarNode && tab.short != nil {
		*n = *expandShort(n, tab)
	}
	if n.kind == listNode && t != nil {
		d.setInList(n, t, parts, key, next, ed)
		return
	}
	if n.kind != mappingNode {
		d.errs = append(d.errs, key.errorf("", "there is %s here, which has no key `%s`", n.kind, key.text))
		return
	}
	var f *field
	if t != nil {
		tab := tableOf(t)
		f = tab.field(part)
	}
	if f == nil || len(parts) == 1 {
		n.put(key, ed.value)
		return
	}
	below := n.get(part)
	if below == nil || below.kind == nullNode {
		below = &node{kind: mappingNode, src: ed.src, line: 1, column: key.column, width: key.width}
		if f.list() {
			below.kind = listNode
		}
		n.put(key, below)
	}
	d.set(below, f.section(), parts[1:], next, ed)
}

// setInList goes on below the element that key names.
func (d *decoder) setInList(list *node, t reflect.Type, parts []string, key *node, next int, ed edit) {
	i, err := pick(list, key)
	switch {
	case err != nil:
		if t == reflect.TypeFor[SystemUse]() && d.cat.find(key.text) != nil {
			err.Hint = "add it first: --set systems=…," + key.text
		}
		d.errs = append(d.errs, err)
	case len(parts) > 1:
		d.set(list.items[i], t, parts[1:], next, ed)
	case ed.value == nil:
		if name, _ := systemName(list.items[i]); name != "" {
			d.dropped = append(d.dropped, name)
		}
		list.items = slices.Delete(list.items, i, i+1)
	default:
		list.items[i] = ed.value
	}
}

// put replaces or adds the entry of key; a nil value removes it.
func (n *node) put(key, value *node) {
	for i := range n.entries {
		if n.entries[i].key.text == key.text {
			if value == nil {
				n.entries = slices.Delete(n.entries, i, i+1)
			} else {
				n.entries[i] = entry{key, value}
			}
			return
		}
	}
	if value != nil {
		n.entries = append(n.entries, entry{key, value})
	}
}

// systemName is the name that an entry of a list goes by.
func systemName(item *node) (name, use string) {
	if item.kind == scalarNode {
		return item.text, item.text
	}
	if u := item.get("use"); u != nil {
		use = u.text
	}
	if n := item.get("name"); n != nil {
		return n.text, use
	}
	return use, use
}

// pick finds an element of a list by its name, or by its number from 1.
func pick(list, key *node) (int, *Error) {
	var names []string
	for i, item := range list.items {
		name, _ := systemName(item)
		if name == key.text {
			return i, nil
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if i, err := strconv.Atoi(key.text); err == nil && i >= 1 && i <= len(list.items) {
		return i - 1, nil
	}
	return 0, key.errorf(suggest.DidYouMean(key.text, names), "the list has no entry `%s`", key.text)
}

// chooseSystems keeps the systems that value names, in the order of value. A
// name that the file does not have adds a system of that kind.
func (d *decoder) chooseSystems(list, value *node) {
	var kept []*node
	for _, want := range elements(value, field{}) {
		var byName, byUse []*node
		for _, item := range list.items {
			name, use := systemName(item)
			if name == want.text {
				byName = append(byName, item)
			} else if use == want.text {
				byUse = append(byUse, item)
			}
		}
		switch {
		case byName != nil:
			kept = append(kept, byName...)
		case byUse != nil:
			kept = append(kept, byUse...)
		default:
			kept = append(kept, want)
		}
	}
	for _, item := range list.items {
		if name, _ := systemName(item); !slices.Contains(kept, item) && name != "" {
			d.dropped = append(d.dropped, name)
		}
	}
	list.items = kept
}

// judged are the keys of [Limits] by which a trial is judged after it has ended, so
// that a finished run can be judged again by other values.
var judged = []string{"others", "machine"}

// Set changes limits of a finished run by --set arguments such as limits.others=none.
// Limits that acted while the run was executed are refused: nothing recorded says
// what another value would have done.
func (l *Limits) Set(sets []string) error {
	for _, arg := range sets {
		path, text, ok := strings.Cut(arg, "=")
		key, isLimit := strings.CutPrefix(strings.TrimSpace(path), "limits.")
		if !ok || !isLimit || !slices.Contains(judged, key) {
			return fmt.Errorf("--set %s: a finished run can be judged again by limits.%s only, such as --set "+
				"limits.%s=none",
				arg, strings.Join(judged, " and limits."), judged[0])
		}
		f := tableOf(reflect.TypeFor[Limits]()).field(key)
		if err := f.parse(strings.TrimSpace(text), reflect.ValueOf(l).Elem().Field(f.index)); err != nil {
			return fmt.Errorf("--set %s: %w", arg, err)
		}
	}
	return nil
}
