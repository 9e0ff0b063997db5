package experiment

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// maxSource is the maximum length of an experiment file in bytes. People write shorter ones, and
// the YAML library needs memory quadratic in the size of what it keeps together.
const maxSource = 16 << 10

type nodeKind int

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mappingNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping"}[k]
}

// node is a value of the file. Unlike the nodes of the YAML library, all have a position, and --set
// can edit them.
type node struct {
	kind    nodeKind
	text    string // a scalar's text, as written
	file    string // the file, or "--set link.rate"
	line    int    // 1-based; 0: from --set
	column  int
	split   bool    // plain text from --set, which may be several values separated by commas
	items   []*node // if a list
	entries []entry // if a mapping
}

type entry struct{ key, value *node }

func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// has reports whether a key is anywhere in n, which may be nil.
func (n *node) has(key string) bool {
	return n != nil && (slices.ContainsFunc(n.items, func(item *node) bool { return item.has(key) }) ||
		slices.ContainsFunc(n.entries, func(e entry) bool { return e.key.text == key || e.value.has(key) }))
}

// scalar returns a new single value at the position of n.
func (n *node) scalar(text string) *node {
	return &node{kind: scalarNode, text: text, file: n.file, line: n.line, column: n.column, split: n.split}
}

// expand returns a mapping with the single value n under an empty key.
func (n *node) expand() *node {
	return &node{kind: mappingNode, file: n.file, line: n.line, column: n.column,
		entries: []entry{{n.scalar(""), n.scalar(n.text)}}}
}

// shortFor returns n with its bare value, if any, under the key that it is short for.
func (n *node) shortFor(key string) *node {
	if n.kind == scalarNode {
		n = n.expand()
	}
	if bare := n.get(""); bare != nil {
		n.put(n.scalar(""), nil)
		if n.get(key) == nil {
			n.put(n.scalar(key), bare)
		}
	}
	return n
}

// errorf returns an error at the position of n.
func (n *node) errorf(hint, format string, args ...any) *Error {
	return &Error{File: n.file, Line: n.line, Column: n.column, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// place describes the position of n, for a message about another position.
func (n *node) place() string {
	if n.line == 0 {
		return "in --set"
	}
	return fmt.Sprintf("on line %d", n.line)
}

// parseYAML reads text into nodes. YAML features that the format does not have (anchors, tags,
// several documents, complex keys) are errors. root is nil if there is nothing to decode. lines
// selects whether nodes have line numbers.
func parseYAML(name string, text []byte, lines bool) (root *node, errs Errors) {
	c := &converter{file: name, lines: lines}
	defer func() { // a file must never crash the command
		if p := recover(); p != nil {
			errs = Errors{c.at(nil).errorf("", "the parser gave up: %v", p)}
		}
	}()
	if len(text) > maxSource {
		return nil, Errors{{File: name, Message: fmt.Sprintf("the file has %d bytes; an experiment has at most %s",
			len(text), Bytes(maxSource))}}
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := c.at(nil), err.Error()
		if syntax, is := errors.AsType[*yaml.SyntaxError](err); is {
			at, message = c.at(syntax.Token), syntax.Message
		}
		return nil, Errors{at.errorf("indent with spaces only, and quote a text that contains `: `", "not YAML: %s",
			message)}
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		n := c.node(doc.Body)
		if root != nil {
			c.fail(n, "one file is one experiment", "a second document begins here")
			break
		}
		root = n
	}
	return root, c.errs
}

// converter converts nodes of the YAML library.
type converter struct {
	file  string
	lines bool
	errs  Errors
}

func (c *converter) fail(n *node, hint, format string, args ...any) {
	c.errs = append(c.errs, n.errorf(hint, format, args...))
}

// at returns a node at the position of t.
func (c *converter) at(t *token.Token) *node {
	n := &node{kind: scalarNode, file: c.file, line: 1, column: 1}
	if t != nil && t.Position != nil {
		n.line, n.column, n.text = t.Position.Line, max(1, t.Position.Column), t.Value
	}
	if !c.lines {
		n.line = 0
	}
	return n
}

func (c *converter) node(y ast.Node) *node {
	n := c.at(y.GetToken())
	switch y := y.(type) {
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.LiteralNode:
		n.text = y.Value.Value
	case *ast.StringNode:
		n.text = y.Value
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
	case *ast.SequenceNode:
		n.kind = listNode
		n.items = each(y.Values, c.node)
	case *ast.MappingNode:
		c.mapping(n, y.Values)
	default:
		c.fail(n, "write the value out", "`%s` is not part of the format", strings.ToLower(y.Type().String()))
	}
	return n
}

// mapping reads the entries of m, and sets its position to that of its first key.
func (c *converter) mapping(m *node, values []*ast.MappingValueNode) {
	m.kind = mappingNode
	for _, v := range values {
		key := c.at(v.Key.GetToken())
		switch k := v.Key.(type) {
		case *ast.StringNode:
			key.text = k.Value
		case *ast.MergeKeyNode, *ast.MappingKeyNode:
			c.fail(key, "write `key: value`", "merge keys and complex keys are not part of the format")
			continue
		}
		if i := slices.IndexFunc(m.entries, func(e entry) bool { return e.key.text == key.text }); i >= 0 {
			c.fail(key, "keep one of them", "duplicate key `%s`, first given %s", key.text, m.entries[i].key.place())
			continue
		}
		value := c.node(v.Value)
		if value.kind == nullNode { // the token of an absent value is the preceding colon
			value.line, value.column = key.line, key.column
		}
		m.entries = append(m.entries, entry{key, value})
	}
	if len(m.entries) > 0 {
		m.line, m.column = m.entries[0].key.line, m.entries[0].key.column
	}
}

// loadTest adds the defaults of a load test for missing keys: one trial, no warm-up, and the
// section of the scenario, whose keys all have defaults.
func (n *node) loadTest() {
	scenario := n.get("scenario")
	if scenario == nil || !(&Experiment{Scenario: scenario.text}).LoadTest() {
		return
	}
	section := *scenario
	section.kind = mappingNode
	for key, value := range map[string]*node{scenario.text: &section, "repetitions": scenario.scalar("1"),
		"warmup": scenario.scalar("0")} {
		if n.get(key) == nil {
			n.put(scenario.scalar(key), value)
		}
	}
}

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
			hint = "add it first: --set systems=" + strings.Join(names, ",") + "," + name
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
