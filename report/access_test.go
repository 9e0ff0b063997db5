package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// A page can be used without seeing it and without a mouse: one main landmark, headings
// in order, names for all that can be operated, captions and scopes for tables.
func TestPageIsAccessible(t *testing.T) {
	for _, name := range []string{"retrieve", "overhead", "upload", "disseminate", "sync"} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			must(t, page.HTML(&b, buildDir(t, facts.Unpack(t, name)), false))
			checkAccess(t, b.Bytes())
		})
	}
}

func checkAccess(t *testing.T, src []byte) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(src))
	must(t, err)
	level, count, ids := 0, map[string]int{}, map[string]bool{}
	var refs []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		ids[attr(n, "id")] = true
		label := attr(n, "aria-label")
		for _, key := range []string{"aria-labelledby", "aria-describedby"} {
			if v := attr(n, key); v != "" {
				refs = append(refs, v)
			}
		}
		switch n.Data {
		case "html":
			if attr(n, "lang") == "" {
				t.Error("the page does not say its language")
			}
		case "h1", "h2", "h3", "h4":
			if now := int(n.Data[1] - '0'); now > level+1 {
				t.Errorf("<%s> %q follows a heading of level %d", n.Data, textOf(n), level)
			} else {
				level = now
			}
		case "button", "a", "summary", "select":
			if label == "" && textOf(n) == "" {
				t.Errorf("<%s> has no name", n.Data)
			}
		case "table":
			if !hasChild(n, "caption") {
				t.Error("a table has no caption")
			}
		case "th":
			if attr(n, "scope") == "" {
				t.Errorf("the heading %q has no scope", textOf(n))
			}
		case "figure":
			if attr(n, "aria-labelledby") == "" || attr(n, "aria-describedby") == "" || !hasChild(n, "figcaption") {
				t.Errorf("%s has no name or no words", attr(n, "id"))
			}
		case "svg":
			if attr(n, "aria-hidden") != "true" {
				t.Error("a decoration is read to screen readers")
			}
		}
		if role := attr(n, "role"); (role == "img" || role == "region" || role == "group") && label == "" {
			t.Errorf("<%s role=%s> has no name", n.Data, role)
		}
		if attr(n, "tabindex") == "0" && attr(n, "role") == "" {
			t.Errorf("<%s> can be reached from the keyboard, and has no role", n.Data)
		}
		if class := strings.Fields(attr(n, "class")); slices.Contains(class, "scroll") && attr(n, "tabindex") != "0" {
			t.Error("what scrolls cannot be reached from the keyboard")
		}
	}
	for _, id := range refs {
		if !ids[id] {
			t.Errorf("#%s is referred to, and missing", id)
		}
	}
	for _, one := range []string{"main", "h1", "header", "footer"} {
		if count[one] != 1 {
			t.Errorf("%d <%s>, want 1", count[one], one)
		}
	}
}

func hasChild(n *html.Node, name string) bool {
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode && c.Data == name {
			return true
		}
	}
	return false
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}
