package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// maxPage is what a page of a small run may weigh.
const maxPage = 3 << 20

func page(t testing.TB, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, r.WriteHTML(&b))
	return b.Bytes()
}

func walk(n *html.Node, each func(*html.Node)) {
	each(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, each)
	}
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
	walk(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return strings.TrimSpace(b.String())
}

// The page asks nothing of any network: no element names a resource outside it,
// and its policy lets no script but its own run and no request leave.
func TestPageStandsAlone(t *testing.T) {
	src := page(t, sharedReport(t))
	if len(src) > maxPage {
		t.Errorf("the page has %d bytes, more than %d", len(src), maxPage)
	}
	doc, err := html.Parse(bytes.NewReader(src))
	must(t, err)
	var policy, script string
	ids := map[string]bool{}
	var links []string
	walk(doc, func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("id %q stands twice", id)
			}
			ids[id] = true
		}
		for _, key := range []string{"src", "href", "action", "data", "poster", "srcset", "xlink:href"} {
			switch v := attr(n, key); {
			case v == "", strings.HasPrefix(v, "data:"):
			case strings.HasPrefix(v, "#"):
				links = append(links, v[1:])
			default:
				t.Errorf("<%s %s=%q> leaves the page", n.Data, key, v)
			}
		}
		switch n.Data {
		case "meta":
			if attr(n, "http-equiv") == "Content-Security-Policy" {
				policy = attr(n, "content")
			}
		case "script":
			if attr(n, "type") == "" {
				script = n.FirstChild.Data
			}
		case "style":
			if s := n.FirstChild.Data; strings.Contains(s, "url(") || strings.Contains(s, "@import") {
				t.Error("the style loads something")
			}
		}
	})
	for _, id := range links {
		if !ids[id] {
			t.Errorf("a link to #%s leads nowhere", id)
		}
	}
	sum := sha256.Sum256([]byte(script))
	want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	for _, part := range []string{"default-src 'none'", want, "connect-src 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %q", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe-eval") || strings.Contains(strings.SplitAfter(policy, "script-src")[1][:60], "unsafe-inline") {
		t.Errorf("the policy allows scripts that are not the page's: %q", policy)
	}
}

// Whatever a figure shows can be read without it.
func TestEveryFigureHasWordsAndATable(t *testing.T) {
	r := sharedReport(t)
	doc, err := html.Parse(bytes.NewReader(page(t, r)))
	must(t, err)
	figures := 0
	walk(doc, func(n *html.Node) {
		if n.Data != "figure" || n.Type != html.ElementNode {
			return
		}
		figures++
		has := map[string]string{}
		walk(n, func(n *html.Node) {
			if n.Type == html.ElementNode && has[n.Data] == "" {
				has[n.Data] = textOf(n)
			}
		})
		has["h3"] += has["h2"] // on the first screen
		for _, part := range []string{"h3", "figcaption", "summary", "tbody"} {
			if has[part] == "" {
				t.Errorf("%s has no %s", attr(n, "id"), part)
			}
		}
		if !regexp.MustCompile(`n = [0-9,]+ `).MatchString(has["figcaption"]) {
			t.Errorf("%s does not say its n: %q", attr(n, "id"), has["figcaption"])
		}
	})
	if want := len(r.Figures) + 1; figures != want || want < 10 {
		t.Errorf("%d figures on the page, want %d and at least 10", figures, want)
	}
}

func TestSpecsAreVegaLite(t *testing.T) {
	r := sharedReport(t)
	b, err := json.Marshal(r.Figures)
	must(t, err)
	if bytes.Contains(b, []byte(`"url"`)) {
		t.Error("a figure loads its data from somewhere")
	}
	for _, f := range r.Figures {
		for _, p := range f.Panels {
			if p.Spec["$schema"] != vegaLite || p.Spec["data"] == nil {
				t.Errorf("%s, %q: no schema or no data", f.ID, p.Title)
			}
		}
		if len(f.Legend) == 0 || f.Better == "" {
			t.Errorf("%s: no legend or no direction", f.ID)
		}
	}
}

// What comes from outside (file, daemon, kernel) is text on the page, never markup.
func TestPageEscapesWhatItQuotes(t *testing.T) {
	evil := `</script><script>alert(1)</script><img src=x onerror=alert(1)>`
	file := strings.Replace(synthetic.File, "title: Synthetic", "title: '"+evil+"'", 1)
	file = strings.Replace(file, "question: How", "question: '"+evil+"' #", 1)
	r := built(t, synthetic.Run{File: strings.Replace(strings.Replace(file, "%d", "1", 1), "[100Mbit, 1Gbit]", "1Gbit", 1), Blocks: 1})
	if r.Title != evil {
		t.Fatalf("title %q", r.Title)
	}
	r.Notes = append(r.Notes, evil)
	r.Figures[0].Panels[0].Title = evil
	doc, err := html.Parse(bytes.NewReader(page(t, r)))
	must(t, err)
	scripts := 0
	walk(doc, func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == "script" {
			scripts++
		}
		if n.Type == html.ElementNode && n.Data == "img" {
			t.Error("an image came in through the title")
		}
	})
	if scripts != 2 {
		t.Errorf("%d script elements, want the data and the page's own", scripts)
	}
}

func TestBundleIsSmallAndCommitted(t *testing.T) {
	b, err := os.ReadFile("page/bundle.js")
	must(t, err)
	if len(b) >= 1<<20 {
		t.Errorf("the bundle has %d bytes; a committed file has less than 1 MiB", len(b))
	}
	if bytes.Contains(b, []byte("</script")) {
		t.Error("the bundle would end its own script element")
	}
}
