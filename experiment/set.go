package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// applySets edits the file's nodes with the --set arguments, in order, before anything is checked,
// so that an unknown key is reported like one in the file.
func (d *decoder) applySets(root *node, sets []string) {
	for _, arg := range sets {
		path, text, ok := strings.Cut(arg, "=")
		path = strings.TrimSpace(path)
		if !ok || path == "" { // the argument may be a secret
			d.errs = append(d.errs, &Error{File: "--set", Message: "not key=value",
				Hint: "write --set key=value, such as --set retrieve.concurrency=1,4"})
			continue
		}
		at := &node{kind: scalarNode, file: "--set " + path}
		value, errs := at.value(text)
		d.errs = append(d.errs, errs...)
		list := root.get("systems")
		switch {
		case errs != nil:
		case path == "systems" && value != nil && value.split && list != nil && list.kind == listNode:
			d.chooseSystems(list, value)
		default:
			d.set(root, strings.Split(path, "."), at, value)
		}
	}
}

// value reads the text after the equals sign: nil if it is empty, YAML if it begins like a list, a
// mapping or a quoted text, and plain text otherwise.
func (at *node) value(text string) (*node, Errors) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if !strings.ContainsAny(text[:1], `[{"'`) {
		n := at.scalar(text)
		n.split = true
		return n, nil
	}
	return parseYAML(at.file, []byte(text), false)
}

// set sets the value at a path below n, and creates missing sections on the way; nil removes the
// value.
func (d *decoder) set(n *node, path []string, at, value *node) {
	if n.kind == scalarNode {
		*n = *n.expand()
	}
	key, rest := path[0], path[1:]
	switch below := n.get(key); {
	case n.kind == listNode:
		d.setInList(n, key, rest, at, value)
	case len(rest) == 0:
		n.put(at.scalar(key), value)
	default:
		if below == nil || below.kind == nullNode {
			below = &node{kind: mappingNode, file: at.file}
			n.put(at.scalar(key), below)
		}
		d.set(below, rest, at, value)
	}
}

// setInList continues set in an entry of a list, by its name or its number from 1.
func (d *decoder) setInList(list *node, name string, rest []string, at, value *node) {
	names := each(list.items, func(item *node) string { name, _ := systemName(item); return name })
	i := slices.Index(names, name)
	if number, err := strconv.Atoi(name); err == nil && i < 0 && number >= 1 && number <= len(names) {
		i = number - 1
	}
	switch {
	case i < 0:
		hint := suggest.DidYouMean(name, names)
		if d.cat.find(name) != nil {
			hint = "add it first: --set systems=…," + name
		}
		d.errs = append(d.errs, at.errorf(hint, "the list has no entry `%s`", name))
	case len(rest) > 0:
		d.set(list.items[i], rest, at, value)
	case value == nil:
		d.dropped = append(d.dropped, names[i])
		list.items = slices.Delete(list.items, i, i+1)
	default:
		list.items[i] = value
	}
}

// put replaces or adds the entry of key; a nil value removes it.
func (n *node) put(key, value *node) {
	n.entries = slices.DeleteFunc(n.entries, func(e entry) bool { return e.key.text == key.text })
	if value != nil {
		n.entries = append(n.entries, entry{key, value})
	}
}

// systemName returns the name of an entry in the list of systems, and the system that it uses.
func systemName(item *node) (name, use string) {
	text := item.text // for a single value
	for _, key := range []string{"", "use", "name"} {
		if n := item.get(key); n != nil {
			text = n.text
		}
		if key == "use" {
			use = text
		}
	}
	return text, use
}

// entriesOf returns the entries of a list of systems whose name and use fulfil a condition.
func (n *node) entriesOf(should func(name, use string) bool) []*node {
	return slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool { return !should(systemName(item)) })
}

// chooseSystems keeps only the systems in value, in that order. A name that is not in the file adds
// a system of that kind.
func (d *decoder) chooseSystems(list, value *node) {
	var kept []*node
	for _, want := range elements(value, field{}) {
		found := list.entriesOf(func(name, _ string) bool { return name == want.text })
		if len(found) == 0 {
			found = list.entriesOf(func(_, use string) bool { return use == want.text })
		}
		if len(found) == 0 {
			found = []*node{want}
		}
		kept = append(kept, found...)
	}
	for _, item := range list.items {
		if name, _ := systemName(item); !slices.Contains(kept, item) && name != "" {
			d.dropped = append(d.dropped, name)
		}
	}
	list.items = kept
}

// judged are the keys of [Limits] that decide about the validity of a trial after it has ended, so
// that a finished run can be judged again with other values.
var judged = []string{"others", "machine"}

// Set changes limits of a finished run by --set arguments such as limits.others=none. It refuses
// limits that were effective during the run: the records do not contain what would have happened
// with another value.
func (l *Limits) Set(sets []string) error {
	for _, arg := range sets {
		path, text, ok := strings.Cut(arg, "=")
		key, isLimit := strings.CutPrefix(strings.TrimSpace(path), "limits.")
		if !ok || !isLimit || !slices.Contains(judged, key) {
			return &Error{File: "--set " + arg, Message: "a finished run can be judged again by limits." +
				strings.Join(judged, " and limits.") + " only"}
		}
		f := tableOf(reflect.TypeFor[Limits]()).field(key)
		if err := f.parse(strings.TrimSpace(text), reflect.ValueOf(l).Elem().Field(f.index)); err != nil {
			return fmt.Errorf("--set %s: %w", arg, err)
		}
	}
	return nil
}
