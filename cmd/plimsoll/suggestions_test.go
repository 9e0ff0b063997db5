package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-project/plimsoll/internal/ui"
)

var (
	// suggested is a command to paste: in backticks, or from a colon to a semicolon or
	// the end of the line.
	suggested = regexp.MustCompile("`plimsoll ([^`]*)`" + `|: plimsoll ([^\n;]*)(?:;|\n|$)`)
	// spoken is the program's name in a sentence, with the word after it.
	spoken = regexp.MustCompile(`(?:^|[\s(])plimsoll ([a-z]+)`)
	flags  = regexp.MustCompile(`\s(--[a-z][a-z-]*)`)
)

// sentences are words that follow the program's name where no verb is meant; the
// second line are names of formats.
var sentences = append(
	strings.Fields("and could draws itself made mark process printed that used waited wants wrote "+stands),
	"chain", "content", "directory", "manifest", "synthetic")

// TestSuggestedCommandsExist reads every string of the program: a command that it
// names must exist, and one that is there to be pasted must be complete.
func TestSuggestedCommandsExist(t *testing.T) {
	t.Parallel()
	commands, named := 0, 0
	look := func(at, text string) {
		c, n, err := checkCommands(text)
		commands, named = commands+c, named+n
		if err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			hidden := strings.HasPrefix(name, ".") && strings.Trim(name, "./") != ""
			if hidden || slices.Contains([]string{"node_modules", "testdata", "web"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains([]string{".yaml", ".txt", ".html"}, filepath.Ext(path)) { // embedded words
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				look(path, verbs.ReplaceAllString(key.ReplaceAllString(line, ""), stands))
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			expr, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := written(expr)
			if ok {
				look(fset.Position(n.Pos()).String(), text)
			}
			return !ok
		})
		return nil
	})
	must(t, err)
	if commands < 10 || named < 30 {
		t.Errorf("only %d commands to paste and %d in sentences were found", commands, named)
	}
}

// stands is what stands for a value in a text; it is taken for a name of a preset.
const stands = "quickstart"

// written is the text of an expression that is a string, with [stands] for what is
// known only when the program runs.
func written(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		x, okX := written(e.X)
		y, okY := written(e.Y)
		if !okX {
			x = stands
		}
		if !okY {
			y = stands
		}
		return x + y, okX || okY
	case *ast.CallExpr:
		f, isSelector := e.Fun.(*ast.SelectorExpr)
		if !isSelector || f.Sel.Name != "Command" && f.Sel.Name != "Sprintf" || len(e.Args) == 0 {
			return "", false
		}
		if f.Sel.Name == "Sprintf" {
			format, ok := written(e.Args[0])
			return verbs.ReplaceAllString(format, stands), ok
		}
		words := make([]string, len(e.Args))
		for i, a := range e.Args {
			if words[i], ok = written(a); !ok {
				words[i] = stands
			}
		}
		if words[0] != "plimsoll" {
			return "", false
		}
		return ": " + strings.Join(words, " "), true // to be pasted, wherever it is put
	}
	return "", false
}

// key is that of a line of YAML, whose colon does not announce a command.
var key = regexp.MustCompile(`^[ -]*[a-z0-9_-]+:( [>|]-?)? *`)

var verbs = regexp.MustCompile(`%[-+#0-9.]*[a-z]`)

// checkCommands looks at what a text says of the program, and counts the commands
// to be pasted and those in sentences.
func checkCommands(text string) (commands, named int, err error) {
	for _, m := range suggested.FindAllStringSubmatch(text, -1) {
		commands++
		words := strings.Fields(m[1] + m[2])
		for i, w := range words {
			words[i] = strings.Trim(w, `'`)
		}
		if err := parses(words); err != nil {
			return commands, named, fmt.Errorf("%q: plimsoll %s: %w", text, strings.Join(words, " "), err)
		}
	}
	for _, at := range spoken.FindAllStringSubmatchIndex(text, -1) {
		verb := text[at[2]:at[3]]
		if slices.Contains(sentences, verb) {
			continue
		}
		named++
		end := strings.IndexAny(text[at[2]:], "`;,.()\"\n")
		words := text[at[2]:]
		if end >= 0 {
			words = words[:end]
		}
		c, _, err := root().Find(strings.Fields(words))
		if err != nil || c == c.Root() {
			return commands, named, fmt.Errorf("%q: there is no verb %q", text, verb)
		}
		for _, f := range flags.FindAllStringSubmatch(words, -1) {
			if name := f[1][2:]; name != "help" && c.Flags().Lookup(name) == nil &&
				c.InheritedFlags().Lookup(name) == nil {
				return commands, named, fmt.Errorf("%q: %s has no flag %s", text, c.CommandPath(), f[1])
			}
		}
	}
	return commands, named, nil
}

// parses reports why the program would not take a command line.
func parses(words []string) error {
	c, rest, err := root().Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if slices.Contains(rest, "--help") {
		return nil
	}
	return c.ValidateArgs(c.Flags().Args())
}

func root() *cobra.Command {
	return (&program{ui: ui.New(&bytes.Buffer{}, &bytes.Buffer{}), stdin: strings.NewReader(""),
		stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).root()
}

func TestCheckCommandsFinds(t *testing.T) {
	for _, text := range []string{
		"see `plimsoll predict x`", "go on: plimsoll resume", "go on: plimsoll resume --again quickstart",
		"plimsoll predict tells more", "plimsoll run --now does it", "see plimsoll systems install --forget NAME",
	} {
		if _, _, err := checkCommands(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
