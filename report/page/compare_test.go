package page_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// A comparison says the same as text, Markdown and page: its verdict, each gate and each
// cell of the headline; names from a run directory command no browser.
func TestComparison(t *testing.T) {
	base, slower := result(t, "retrieve"), result(t, "retrieve-slower")
	c, err := analysis.CompareRuns(base, []*analysis.Result{slower}, []string{"base", "<script>new"},
		analysis.CompareOptions{})
	must(t, err)
	const gate = "no worse than BASE by 5%"
	must(t, c.DecideGates([]string{gate}))
	var text, markdown, html bytes.Buffer
	must(t, errors.Join(page.CompareText(&text, c, 80), page.CompareMarkdown(&markdown, c), page.CompareHTML(&html, c)))
	if !strings.HasPrefix(text.String(), c.Verdict.Text) {
		t.Errorf("the text begins with %.80q", text.String())
	}
	for _, form := range []string{text.String(), markdown.String(), html.String()} {
		contains(t, form, c.Verdict.Text, gate, "FAIL", "0.175×", "67.6 MB/s", "11.8 MB/s")
	}
	if strings.Contains(html.String(), "<script") || strings.Contains(markdown.String(), "<script") {
		t.Error("a name is a script")
	}
}

// "~" says that a test found nothing: a metric that was not tested has none.
func TestComparisonOfUntested(t *testing.T) {
	base, slower := result(t, "retrieve"), result(t, "retrieve")
	c, err := analysis.CompareRuns(base, []*analysis.Result{slower}, []string{"base", "new"}, analysis.CompareOptions{})
	must(t, err)
	for i := range c.Overall {
		c.Overall[i].Test, c.Overall[i].Value = analysis.Test{P: analysis.Unknown, PHolm: analysis.Unknown}, 1
	}
	for _, cell := range c.Cells {
		for _, m := range cell.Metrics {
			m.New[0].Ratio.Test = analysis.Test{P: analysis.Unknown, PHolm: analysis.Unknown}
		}
	}
	var b bytes.Buffer
	must(t, page.CompareText(&b, c, 0))
	contains(t, b.String(), "not tested", "1.00×")
	if strings.Contains(b.String(), "~") {
		t.Error(b.String())
	}
}
