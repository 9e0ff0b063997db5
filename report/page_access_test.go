package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// everyScenario are small runs of all scenarios.
func everyScenario(t *testing.T) map[string]*Report {
	t.Helper()
	load := plainLoad(1)
	load.objects, load.hours = 300, 8
	return map[string]*Report{"retrieve": sharedReport(t), "overhead": sharedCosts(t), "upload": load.report(t), "disseminate": swarmTruth{}.build(t), "sync": syncTruth{}.build(t)}
}

// A page can be used without seeing it and without a mouse: one main landmark,
// headings in order, names for all that can be operated, captions and scopes for
// tables, pictures with words.
func TestPageIsAccessible(t *testing.T) {
	for name, r := range everyScenario(t) {
		t.Run(name, func(t *testing.T) { checkAccess(t, page(t, r)) })
	}
}

func checkAccess(t *testing.T, src []byte) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(src))
	must(t, err)
	level, count, ids := 0, map[string]int{}, map[string]bool{}
	var refs []string
	walk(doc, func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
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
			if n.FirstChild == nil || !hasChild(n, "caption") {
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
				t.Error("a decoration is told to screen readers")
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
	})
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
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && c.Data == name {
			return true
		}
	}
	return false
}

var cssColour = regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6})`)

// themes are the colours of the light and of the dark page.
func themes(t *testing.T) map[string]map[string][3]float64 {
	t.Helper()
	css, err := pageFiles.ReadFile("page/page.css")
	must(t, err)
	all := map[string]map[string][3]float64{"light": {}, "dark": {}}
	read := func(into map[string][3]float64, selector string) {
		_, block, ok := strings.Cut(string(css), selector)
		if !ok {
			t.Fatalf("no %s in the style", selector)
		}
		block, _, _ = strings.Cut(block, "}")
		for _, m := range cssColour.FindAllStringSubmatch(block, -1) {
			var c [3]float64
			for i := range c {
				v, err := strconv.ParseUint(m[2][2*i:2*i+2], 16, 8)
				must(t, err)
				c[i] = float64(v) / 255
			}
			into[m[1]] = c
		}
	}
	read(all["light"], ":root {")
	read(all["dark"], ":root {")
	read(all["dark"], `:root[data-theme="dark"] {`)
	return all
}

// contrast is that of two colours by WCAG 2.2 (1: none, 21: black on white).
func contrast(a, b [3]float64) float64 {
	luminance := func(c [3]float64) float64 {
		for i, v := range c {
			if v <= 0.04045 {
				c[i] = v / 12.92
			} else {
				c[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text has a contrast of 4.5 and marks have one of 3, on light and on dark paper.
func TestColoursCanBeTold(t *testing.T) {
	if c := contrast([3]float64{}, [3]float64{1, 1, 1}); math.Abs(c-21) > 1e-9 {
		t.Fatalf("black on white: %v", c)
	}
	for name, theme := range themes(t) {
		want := func(fore, back string, least float64) {
			f, okf := theme[fore]
			b, okb := theme[back]
			if !okf || !okb {
				t.Errorf("%s: no colour %s or %s", name, fore, back)
			} else if c := contrast(f, b); c < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %v", name, fore, back, c, least)
			}
		}
		for _, fore := range []string{"ink", "soft", "accent", "good", "warn", "bad", "neutral"} {
			want(fore, "paper", 4.5)
			want(fore, "wash", 4.5)
		}
		for _, tone := range []string{"good", "warn", "bad", "neutral"} {
			want(tone, tone+"-bg", 4.5)
		}
		marks := 0
		for key := range theme {
			if regexp.MustCompile(`^(s[0-9]|o-.*)$`).MatchString(key) {
				want(key, "paper", 3)
				marks++
			}
		}
		if marks != 18 {
			t.Errorf("%s: %d colours of marks", name, marks)
		}
	}
}

// A system is told by its mark, too, never by colour alone; up to eight of them.
func TestSystemsDifferInShape(t *testing.T) {
	seen := map[string]bool{}
	for slot := range 8 {
		seen[systemShape(slot)] = true
		if legendMarks[systemShape(slot)] == "" {
			t.Errorf("the legend cannot draw a %s", systemShape(slot))
		}
	}
	if len(seen) != 8 {
		t.Error(fmt.Sprint("shapes stand twice: ", seen))
	}
}
