package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// found are the files of some patterns.
func found(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, pattern := range patterns {
		some, err := filepath.Glob(pattern)
		must(t, err)
		files = append(files, some...)
	}
	return files
}

// pages are the documents of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	all := found(t, "../*.md", "*.md", "systems/*.md")
	if len(all) < 35 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence    = regexp.MustCompile("(?s)```.*?```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	goFile   = regexp.MustCompile("`([a-z]+/[a-zA-Z0-9_./]+\\.(?:go|ts|md|yaml|sh|json|css|html))`")
)

// TestLinks: each link from a page to another part of the repository leads
// somewhere, to the heading, too.
func TestLinks(t *testing.T) {
	n := 0
	for _, page := range pages(t) {
		text := read(t, page)
		if strings.Contains(text, "\n<<<<<<< ") {
			t.Errorf("%s has a merge conflict in it", page)
		}
		hide := func(s string) string { return strings.Repeat("x", len(s)) }
		prose := codeSpan.ReplaceAllStringFunc(fence.ReplaceAllString(text, ""), hide)
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s links to %s: there is no such heading", page, m[1])
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links were found", n)
	}
}

// TestFilesThatAreNamed: each file of the repository that a page names by its path
// is there.
func TestFilesThatAreNamed(t *testing.T) {
	n := 0
	for _, page := range pages(t) {
		for _, m := range goFile.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if info, err := os.Stat(filepath.Join("..", top)); err != nil || !info.IsDir() || top == "runs" {
				continue // of a run directory, of another program; runs/ is the user's
			}
			example := strings.Contains(m[1], "NAME") || strings.Contains(m[1], "webdav")
			if example && strings.HasSuffix(page, "adding-a-system.md") {
				continue // to be made
			}
			n++
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d files were found", n)
	}
}

// TestEveryPageIsListed: who begins at the list of pages finds all of them.
func TestEveryPageIsListed(t *testing.T) {
	list := read(t, "README.md")
	for _, page := range pages(t) {
		dir, file := filepath.Split(page)
		if dir == "" && file != "README.md" && !strings.Contains(list, "]("+file+")") {
			t.Errorf("docs/README.md does not list %s", file)
		}
	}
}

// anchors are what GitHub makes of the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(strings.TrimSpace(m[1])) {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				b.WriteRune(r)
			case r == ' ':
				b.WriteByte('-')
			}
		}
		all = append(all, b.String())
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}
