package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Equal content is packed to equal bytes, regardless of its order and of who packs it when.
func TestArchiveIsReproducible(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	noError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	a, b := entry{name: "bin/script", path: script, mode: 0o755}, entry{name: "README", data: []byte("words\n")}
	files := []entry{a, b}
	packed := twice(t, func(path string) {
		writeArchive(path, "top", files, time.Unix(1e9, 0))
		slices.Reverse(files)
		noError(t, os.Chtimes(script, time.Now(), time.Now().Add(time.Hour)))
	})
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	noError(t, err)
	var names []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		noError(t, err)
		if h.Uname != "" || h.Uid != 0 || !h.ModTime.Equal(time.Unix(1e9, 0)) ||
			(h.Mode == 0o755) != (h.Name == "top/bin/script") {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "top/README top/bin/script" {
		t.Errorf("files %s", got)
	}
}

// The bill of this test's own binary names its modules, with their checksums, and the packages in
// the page's bundle. Repeating it gives the same bill.
func TestBill(t *testing.T) {
	t.Chdir("..")
	self, err := os.Executable()
	noError(t, err)
	bill := twice(t, func(path string) { writeBill(path, self, "v1.2.3", time.Unix(1e9, 0).UTC()) })
	var bom cdx.BOM
	noError(t, json.Unmarshal(bill, &bom))
	found := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		found[c.Name] = c
	}
	for _, name := range []string{"std", "github.com/CycloneDX/cyclonedx-go", "vega", "vega-lite"} {
		if c := found[name]; c.Version == "" || !strings.HasPrefix(c.PackageURL, "pkg:") {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if p := found["github.com/CycloneDX/cyclonedx-go"].Properties; p == nil ||
		!strings.HasPrefix((*p)[0].Value, "h1:") {
		t.Errorf("no checksum: %+v", p)
	}
	for _, name := range []string{"esbuild", "typescript", "playwright-core"} {
		if _, ok := found[name]; ok {
			t.Errorf("%s is for building only", name)
		}
	}
}

// A module without a licence stops a release.
func TestEveryModuleHasALicence(t *testing.T) {
	dir := t.TempDir()
	err := attempt(func() { licences([]module{{name: "example.org/x", version: "v1.0.0", dir: dir}}) })
	if err == nil ||
		!strings.Contains(err.Error(), "example.org/x v1.0.0 has no licence") {
		t.Errorf("%v", err)
	}
}

// The container image is one index with an image for each architecture, equal for equal content. It
// contains the program and its notices.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	noError(t, os.WriteFile(program, []byte("program"), 0o700))
	packed := filepath.Join(dir, "image.tar")
	noError(t, os.WriteFile(packed, twice(t, func(path string) {
		var index v1.ImageIndex = empty.Index
		for _, arch := range []string{"amd64", "arm64"} {
			index = addImage(index, arch, program, []entry{{name: "LICENCE", data: []byte(arch)}}, time.Unix(1e9, 0))
		}
		writeImage(path, "v1", index, time.Unix(1e9, 0))
	}), 0o600))
	// Plimsoll's own store reads it once it is unpacked.
	layout := filepath.Join(dir, "layout")
	noError(t, os.Mkdir(layout, 0o700))
	noError(t, exec.Command("tar", "-xf", packed, "-C", layout).Run())
	img, err := image.Store{Dir: filepath.Join(dir, "store")}.Load(t.Context(), "localhost/plimsoll:v1", layout)
	noError(t, err)
	if _, err := img.Program("plimsoll"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 100)
	n, err := img.Head("/usr/share/doc/plimsoll/LICENCE", b)
	if err != nil || string(b[:n]) != runtime.GOARCH {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// The man page has a section for each command, and no text that troff would execute.
func TestManual(t *testing.T) {
	program := filepath.Join(t.TempDir(), "plimsoll")
	script := "#!/bin/sh\ncase $1 in\n--help) echo 'Plimsoll.'; echo '.run';;\n" +
		"__complete) printf 'run\\tRuns.\\nhelp\\tHelps.\\n:4\\n';;\n*) echo \"$1: --out DIR\";;\nesac\n"
	noError(t, os.WriteFile(program, []byte(script), 0o700))
	page := manual(t.Context(), program, "v1.2.3", time.Unix(0, 0).UTC())
	for _, want := range []string{`.TH PLIMSOLL 1 "1970-01-01" "plimsoll v1.2.3"`, "\n\\&.run\n",
		"\n.SS run\n.in 0\n.nf\n\\&run: \\-\\-out DIR\n"} {
		if !strings.Contains(string(page.data), want) {
			t.Errorf("no %q in\n%s", want, page.data)
		}
	}
	if strings.Contains(string(page.data), ".SS help") {
		t.Error("help has a section")
	}
}

// twice returns what write writes to a file, and checks that a second call writes the same.
func twice(t *testing.T, write func(path string)) []byte {
	t.Helper()
	var made [2][]byte
	for i := range made {
		path := filepath.Join(t.TempDir(), "made")
		write(path)
		var err error
		made[i], err = os.ReadFile(path)
		noError(t, err)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("made twice, it differs")
	}
	return made[0]
}

var noError = systemtest.Must
