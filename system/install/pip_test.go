package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// index is a package index on this machine. It records which files were fetched.
type index struct {
	files map[string][]byte // by file name; the text before the first dash is the project

	mu      sync.Mutex
	fetched []string
}

func (x *index) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if name, ok := strings.CutPrefix(req.URL.Path, "/files/"); ok {
		x.mu.Lock()
		x.fetched = append(x.fetched, name)
		x.mu.Unlock()
		_, _ = w.Write(x.files[name])
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for name := range x.files {
		project, _, _ := strings.Cut(name, "-")
		if project == path.Base(req.URL.Path) {
			fmt.Fprintf(w, "<a href=\"/files/%s\">%s</a>\n", name, name)
		}
	}
}

// backend returns a wheel of a program that builds wheels of the package probe.
func backend(t *testing.T, version string) []byte {
	info := "builder-" + version + ".dist-info/"
	return zipped(t, map[string]string{
		"builder.py": `import zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = "probe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(directory + "/" + name, "w") as z:
        z.writestr("probe.py", "made_by = '` + version + `'")
        z.writestr("probe-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n")
        z.writestr("probe-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("probe-1.0.dist-info/RECORD", "")
    return name
`,
		info + "METADATA": "Metadata-Version: 2.1\nName: builder\nVersion: " + version + "\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   "",
	})
}

func zipped(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	must(t, z.AddFS(tree(files)))
	must(t, z.Close())
	return b.Bytes()
}

func tarred(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	must(t, w.AddFS(tree(files)))
	must(t, w.Close())
	must(t, g.Close())
	return b.Bytes()
}

func tree(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return all
}

// A package that is built here is built with the packages in the lock file, even if its source
// requires something newer: nothing else is fetched.
func TestABuildFetchesNothingOutsideTheLock(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	const locked, newer, source = "builder-1.0-py3-none-any.whl", "builder-2.0-py3-none-any.whl", "probe-1.0.tar.gz"
	x := &index{files: map[string][]byte{
		locked: backend(t, "1.0"), newer: backend(t, "2.0"),
		source: tarred(t, map[string]string{
			"probe-1.0/PKG-INFO":       "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n",
			"probe-1.0/pyproject.toml": "[build-system]\nrequires = [\"builder>=1\"]\nbuild-backend = \"builder\"\n",
		}),
	}}
	server := httptest.NewServer(x)
	defer server.Close()
	for k, v := range map[string]string{"PIP_INDEX_URL": server.URL + "/simple/", "PIP_CONFIG_FILE": "/dev/null",
		"PIP_FIND_LINKS": "", "PIP_NO_CACHE_DIR": "1", "PIP_EXTRA_INDEX_URL": ""} {
		t.Setenv(k, v)
	}
	dir := t.TempDir()
	if out, err := exec.Command(python, "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Skipf("no virtual environments here: %v: %s", err, out)
	}
	lock := func(name, version, file string) []byte {
		return fmt.Appendf(nil, "%s==%s --hash=sha256:%x\n", name, version, sha256.Sum256(x.files[file]))
	}
	err = pipInstall(t.Context(), dir, io.Discard, lock("probe", "1.0", source), lock("builder", "1.0", locked),
		[]string{"probe"})
	must(t, err)
	slices.Sort(x.fetched)
	if !slices.Equal(x.fetched, []string{locked, source}) {
		t.Errorf("fetched %q", x.fetched)
	}
	made, err := exec.Command(dir+"/bin/python", "-c", "import probe; print(probe.made_by)").CombinedOutput()
	if err != nil || strings.TrimSpace(string(made)) != "1.0" {
		t.Errorf("made by %s (%v)", made, err)
	}
}
