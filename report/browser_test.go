package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seen is what web/test/page.mjs reports of a page.
type seen struct {
	Noise, Requests, Nameless, Unfocused          []string
	Title                                         string
	Figures, Plots, Pictures, Early, Marks, Stops int
	Printed, Sideways                             int
	Chosen, Themed                                bool
	Ready                                         float64 // ms
	Widths, Fold                                  map[string]int
	Saved                                         map[string]string // suggested names, by file
}

// look opens a page in headless Chromium; it skips, with the reason, where that
// is missing and PLIMSOLL_REQUIRE does not ask for it.
func look(t testing.TB, url string, save ...string) seen {
	t.Helper()
	missing := func(what string) {
		if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), "chromium") {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		missing("chromium is not installed: the page is not looked at")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is not installed: the page is not looked at")
	}
	if _, err := os.Stat("../web/node_modules/playwright-core"); err != nil {
		missing("web/node_modules is missing (cd web && npm ci): the page is not looked at")
	}
	cmd := exec.Command(node, append([]string{"test/page.mjs", chromium, url}, save...)...)
	cmd.Dir = "../web"
	cmd.WaitDelay = 5 * time.Second
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("page.mjs: %v\n%s", err, stderr.String())
	}
	var s seen
	must(t, json.Unmarshal(out, &s))
	return s
}

// A page of each scenario is drawn without noise, asks for nothing, fits its
// window, can be used from the keyboard, has its first screen above the fold, and
// gives away every figure whole.
func TestPageInChromium(t *testing.T) {
	for name, r := range everyScenario(t) {
		src := page(t, r)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "report.html")
			must(t, os.WriteFile(path, src, 0o644))
			s := look(t, "file://"+path, dir)
			for _, n := range s.Noise {
				t.Error(n)
			}
			if len(s.Requests) != 2 || s.Requests[0] != "file://"+path || s.Requests[1] != s.Requests[0] { // it is loaded again to be printed
				t.Errorf("the page asked for %q", s.Requests)
			}
			if s.Figures != len(r.Figures)+1 || s.Pictures != s.Plots || s.Printed != s.Plots || s.Marks < 50 {
				t.Errorf("%d figures, %d plots, %d pictures with %d marks, %d on paper", s.Figures, s.Plots, s.Pictures, s.Marks, s.Printed)
			}
			if s.Early == 0 || s.Early >= s.Plots {
				t.Errorf("%d of %d pictures are drawn before anyone scrolls", s.Early, s.Plots)
			}
			if name == "retrieve" && !s.Chosen || !s.Themed {
				t.Errorf("choosing cells changed the picture: %v; the theme changed: %v", s.Chosen, s.Themed)
			}
			for width, want := range map[string]int{"1280": 1280, "360": 360} {
				if s.Widths[width] != want {
					t.Errorf("at %s px the page is %d px wide", width, s.Widths[width])
				}
			}
			for part, bottom := range s.Fold {
				if bottom <= 0 || bottom > 800 {
					t.Errorf("%s ends at %d px, and the first screen at 800", part, bottom)
				}
			}
			for _, e := range append(s.Nameless, s.Unfocused...) {
				t.Errorf("screen reader or keyboard: %s", e)
			}
			if s.Stops < 10 {
				t.Errorf("the keyboard reaches %d places", s.Stops)
			}
			for _, f := range append([]Figure{*r.Hero}, r.Figures...) {
				checkSaved(t, dir, f, s.Saved)
			}
			dark := decoded(t, filepath.Join(dir, r.Hero.ID+"-dark.png"))
			if got := hexAt(dark); got != hexOf(themes(t)["dark"]["paper"]) {
				t.Errorf("on the dark page a picture is saved on %s", got)
			}
		})
	}
}

// checkSaved looks at what a figure is downloaded as: a table with the numbers of
// the figure, and pictures on paper with its title, its n and its legend.
func checkSaved(t *testing.T, dir string, f Figure, names map[string]string) {
	t.Helper()
	for _, kind := range []string{"svg", "png", "csv"} {
		if _, ok := names[f.ID+".png"]; kind == "png" && !ok {
			continue
		}
		if got, want := names[f.ID+"."+kind], "plimsoll-"+f.ID+"."+kind; got != want {
			t.Errorf("%s is saved as %q, want %q", f.ID, got, want)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, f.ID+".csv"))
	must(t, err)
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil || len(rows) != len(f.Table.Rows)+1 {
		t.Errorf("%s.csv has %d rows of %d: %v", f.ID, len(rows)-1, len(f.Table.Rows), err)
		return
	}
	numbers := 0
	for i, row := range f.Table.Rows {
		for j, e := range row {
			if e.Raw == "" {
				continue
			}
			if rows[i+1][j] != e.Raw {
				t.Errorf("%s.csv, row %d: %q, want %q", f.ID, i+1, rows[i+1][j], e.Raw)
				return
			}
			if _, err := strconv.ParseFloat(e.Raw, 64); err == nil {
				numbers++
			}
		}
	}
	if numbers == 0 {
		t.Errorf("%s.csv has no number", f.ID)
	}
	raw, err = os.ReadFile(filepath.Join(dir, f.ID+".svg"))
	must(t, err)
	var words strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(raw)); ; {
		tok, err := d.Token()
		if err != nil {
			if err != io.EOF {
				t.Errorf("%s.svg: %v", f.ID, err)
			}
			break
		}
		if s, ok := tok.(xml.CharData); ok {
			words.Write(s)
			words.WriteByte('\n')
		}
	}
	want := []string{f.Title, f.N}
	for _, l := range f.Legend {
		want = append(want, l.Label)
	}
	for _, w := range want {
		if !strings.Contains(words.String(), w) {
			t.Errorf("%s.svg does not say %q", f.ID, w)
		}
	}
	light := themes(t)["light"]
	if paper := hexOf(light["paper"]); !bytes.Contains(raw, []byte(`fill="`+paper+`"`)) || bytes.Contains(raw, []byte("var(--")) || bytes.Contains(raw, []byte("NaN")) {
		t.Errorf("%s.svg is not on paper, or has marks or colours that are nowhere", f.ID)
	}
	if _, ok := names[f.ID+".png"]; !ok {
		return
	}
	img := decoded(t, filepath.Join(dir, f.ID+".png"))
	if b := img.Bounds(); b.Dx() < 600 || b.Dy() < 100 || hexAt(img) != hexOf(light["paper"]) {
		t.Errorf("%s.png: %v on %s", f.ID, b, hexAt(img))
	}
}

func decoded(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	must(t, err)
	return img
}

// hexAt is the colour of a picture's first pixel.
func hexAt(img image.Image) string {
	r, g, b, a := img.At(0, 0).RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8) + map[bool]string{false: " (transparent)"}[a == 0xffff]
}

func hexOf(c [3]float64) string {
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]*255+0.5), int(c[1]*255+0.5), int(c[2]*255+0.5))
}

func TestLivePageInChromium(t *testing.T) {
	srv := httptest.NewServer(Live(shared(t)))
	defer srv.Close()
	s := look(t, srv.URL+"/")
	for _, n := range s.Noise {
		t.Error(n)
	}
	for _, r := range s.Requests {
		if !strings.HasPrefix(r, srv.URL) {
			t.Errorf("the live page asked for %s", r)
		}
	}
	if s.Pictures != s.Plots || s.Pictures == 0 {
		t.Errorf("%d plots, %d pictures", s.Plots, s.Pictures)
	}
}
