package experiment

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxSource is the longest experiment file: more than a person writes, and little enough
// for the YAML library, which takes memory with the square of what it keeps together.
const maxSource = 16 << 10

// maxDepth is how deep lists and mappings may be nested; the format needs five.
const maxDepth = 32

type nodeKind int

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mappingNode
	badNode // reported already; nothing more is said about it
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping", "something else"}[k]
}

// source is a text that nodes come from: the file, or one --set argument.
type source struct {
	name   string
	lines  []string
	set    bool
	hidden []bool // lines that messages do not quote; nil: they may quote all
}

// node is a value of the file. Unlike the YAML library's nodes all have a
// place, and --set can edit them.
type node struct {
	kind    nodeKind
	text    string // a scalar's text, as written
	src     *source
	line    int // 1-based
	column  int
	width   int
	inner   int     // where the text begins after column: 1 behind a quote; -1 when it is not on the line as written
	shortOf string  // the path that n was short for, when it is not written out
	items   []*node // of a list
	entries []entry // of a mapping
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

// errorf is an error at n.
func (n *node) errorf(hint, format string, args ...any) *Error {
	return &Error{File: n.src.name, Line: n.line, Column: n.column, Width: n.width,
		Message: fmt.Sprintf(format, args...),
		Hint:    hint,
		set:     n.src.set, src: n.src}
}

// verbatim reports whether the line that n begins on has its whole text as it
// is, so that an offset into the text is an offset into the line.
func (n *node) verbatim(text string) bool {
	if n.line < 1 || n.line > len(n.src.lines) {
		return false
	}
	line := []rune(n.src.lines[n.line-1])
	from := n.column - 1 + n.inner
	return from <= len(line) && strings.HasPrefix(string(line[from:]), text)
}

// place is where n is, for a message about another place.
func (n *node) place() string {
	if n.src.set {
		return "in --set"
	}
	return fmt.Sprintf("on line %d", n.line)
}

// parseYAML reads src into nodes. What YAML allows and the format does not
// (anchors, tags, several documents, complex keys) is an error. The node is
// nil when there is nothing to decode.
func parseYAML(src *source, text []byte) (root *node, errs Errors) {
	defer func() {
		if errs != nil { // what is what in it is not known
			src.hide(1, len(src.lines))
		}
	}()
	at := &node{src: src, line: 1, column: 1, width: 1}
	if len(text) > maxSource {
		return nil, Errors{{File: src.name, Message: fmt.Sprintf("the file has %d bytes; an experiment has at most %s",
			len(text), Bytes(maxSource))}}
	}
	file, wrong, message := parseLibrary(text)
	if message != "" {
		at.moveTo(wrong)
		return nil, Errors{at.errorf(syntaxHint(message), "%s", message)}
	}
	c := &converter{src: src}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			n := c.node(doc.Body, 0)
			c.errs = append(c.errs, n.errorf("one file is one experiment", "a second document begins here"))
			break
		}
		root = c.node(doc.Body, 0)
	}
	return root, c.errs
}

// parseLibrary turns a panic of the YAML library into an error: a file must
// never crash the command.
func parseLibrary(text []byte) (file *ast.File, at *token.Token, message string) {
	defer func() {
		if p := recover(); p != nil {
			message = fmt.Sprintf("not YAML: the parser gave up: %v", p)
		}
	}()
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, syntax.Token, "not YAML: " + syntax.Message
	case err != nil:
		return nil, nil, "not YAML: " + err.Error()
	}
	return file, nil, ""
}

func syntaxHint(message string) string {
	switch {
	case strings.Contains(message, "'\t'"):
		return "indent with spaces; YAML allows no tabs"
	case strings.Contains(message, "mapping value is not allowed"):
		return "check the indentation; quote a text that contains `: `"
	}
	return ""
}

func (n *node) moveTo(t *token.Token) {
	if t == nil || t.Position == nil {
		return
	}
	n.line, n.column = t.Position.Line, max(1, t.Position.Column)
	n.width = max(1, len([]rune(t.Value)))
	switch t.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		n.width += 2
		n.inner = 1
	}
}

type converter struct {
	src  *source
	errs Errors
}

func (c *converter) fail(n *node, hint, format string, args ...any) *node {
	c.errs = append(c.errs, n.errorf(hint, format, args...))
	n.kind = badNode
	return n
}

func (c *converter) node(y ast.Node, depth int) *node {
	n := &node{src: c.src, line: 1, column: 1, width: 1}
	n.moveTo(y.GetToken())
	if depth > maxDepth {
		return c.fail(n, "", "nested deeper than %d", maxDepth)
	}
	switch y := y.(type) {
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.LiteralNode:
		n.kind, n.text, n.inner = scalarNode, y.Value.Value, -1
	case *ast.StringNode:
		n.kind, n.text = scalarNode, y.Value
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = scalarNode, y.GetToken().Value
	case *ast.SequenceNode:
		n.kind = listNode
		for _, item := range y.Values {
			n.items = append(n.items, c.node(item, depth+1))
		}
	case *ast.MappingNode:
		n.kind = mappingNode
		for _, v := range y.Values {
			c.entry(n, v, depth)
		}
		c.begin(n)
	case *ast.MappingValueNode:
		n.kind = mappingNode
		c.entry(n, y, depth)
		c.begin(n)
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return c.fail(n, "write the value out", "anchors and aliases are not part of the format")
	case *ast.TagNode:
		return c.fail(n, "write the value without it", "tags are not part of the format")
	default:
		return c.fail(n, "", "a %s is not part of the format", strings.ToLower(y.Type().String()))
	}
	return n
}

// begin moves a mapping's place from its first colon to its first key.
func (c *converter) begin(n *node) {
	if len(n.entries) > 0 {
		k := n.entries[0].key
		n.line, n.column, n.width = k.line, k.column, k.width
	}
}

func (c *converter) entry(m *node, v *ast.MappingValueNode, depth int) {
	key := &node{src: c.src, line: 1, column: 1, width: 1, kind: scalarNode}
	key.moveTo(v.Key.GetToken())
	switch k := v.Key.(type) {
	case *ast.StringNode:
		key.text = k.Value
	case *ast.MergeKeyNode:
		c.fail(key, "write the keys out", "merge keys are not part of the format")
		return
	case *ast.MappingKeyNode:
		c.fail(key, "write `key: value`", "complex keys are not part of the format")
		return
	default:
		key.text = k.GetToken().Value
	}
	for _, e := range m.entries {
		if e.key.text == key.text {
			c.errs = append(c.errs, key.errorf("keep one of them", "duplicate key `%s`, first given %s", key.text,
				e.key.place()))
			return
		}
	}
	value := c.node(v.Value, depth+1)
	if value.kind == nullNode {
		// The token of an absent value is the colon before it.
		value.line, value.column, value.width = key.line, key.column, key.width
	}
	m.entries = append(m.entries, entry{key, value})
}
