package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
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
