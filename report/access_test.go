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
		need := func(ok bool, what string) {
			t.Helper()
			if !ok {
				t.Errorf("<%s> %.80q %s", n.Data, textOf(n), what)
			}
		}
		for _, key := range []string{"aria-labelledby", "aria-describedby"} {
			if v := attr(n, key); v != "" {
				refs = append(refs, v)
			}
		}
		switch n.Data {
		case "html":
			need(attr(n, "lang") != "", "does not say its language")
		case "h1", "h2", "h3", "h4":
			now := int(n.Data[1] - '0')
			need(now <= level+1, "skips a level of headings")
			level = now
		case "button", "a", "summary", "select":
			need(label != "" || textOf(n) != "", "has no name")
		case "table":
			need(hasChild(n, "caption"), "has no caption")
		case "th":
			need(attr(n, "scope") != "", "has no scope")
		case "figure":
			need(attr(n, "aria-labelledby") != "" && attr(n, "aria-describedby") != "", "has no name or no words")
			need(hasChild(n, "figcaption"), "has no caption")
		case "svg":
			need(attr(n, "aria-hidden") == "true", "is a decoration that is read to screen readers")
		}
		role, reached := attr(n, "role"), attr(n, "tabindex") == "0"
		need(label != "" || !slices.Contains([]string{"img", "region", "group"}, role), "has a role and no name")
		need(role != "" || !reached, "can be reached from the keyboard, and has no role")
		need(reached || !slices.Contains(strings.Fields(attr(n, "class")), "scroll"),
			"scrolls, and cannot be reached from the keyboard")
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
