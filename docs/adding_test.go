package docs

import (
	"bytes"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var fileBlock = regexp.MustCompile("(?s)```(?:go|yaml)\n(?://|#) (system/[a-z_/]+\\.(?:go|yaml))\n\n(.*?)```")

// TestAddingASystem takes the system that the page adds out of the page, lays it
// over the module as a package of its own, and puts it through the conformance
// suite: the page is right when that passes.
func TestAddingASystem(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a package and runs processes for some seconds")
	}
	root, err := filepath.Abs("..")
	must(t, err)
	if _, err := os.Stat(filepath.Join(root, "system", "webdav")); err == nil {
		t.Skip("system/webdav is there: who follows the page has added it")
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	lay := func(path, text string) {
		file := filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		must(t, os.WriteFile(file, []byte(text), 0o644))
		overlay.Replace[filepath.Join(root, path)] = file
	}
	text, files := read(t, "adding-a-system.md"), map[string]string{}
	for _, m := range fileBlock.FindAllStringSubmatch(text, -1) {
		if strings.HasSuffix(m[1], ".yaml") {
			lay(m[1], m[2])
			continue
		}
		if formatted, err := format.Source([]byte(m[2])); err != nil || !bytes.Equal(formatted, []byte(m[2])) {
			t.Errorf("%s is not formatted as gofmt does it: %v", m[1], err)
		}
		lay(m[1], m[2])
		files[m[1]] = m[2]
	}
	if len(overlay.Replace) != 5 {
		t.Fatalf("the page has %d files, and says five", len(overlay.Replace))
	}
	// The line that it has written into the list of systems.
	all := read(t, "../system/all/all.go")
	listed := strings.Replace(all, "\t\tstatic.System{},\n", "\t\tstatic.System{},\n\t\twebdav.System{},\n", 1)
	listed = strings.Replace(listed, "\t\"github.com/plimsoll-project/plimsoll/system/tahoe\"\n",
		"\t\"github.com/plimsoll-project/plimsoll/system/tahoe\"\n"+
			"\t\"github.com/plimsoll-project/plimsoll/system/webdav\"\n", 1)
	if !strings.Contains(text, "`webdav.System{},`") || strings.Count(listed, "webdav") != 2 {
		t.Error("the line for the list of systems cannot be entered")
	}
	lay("system/all/all.go", listed)

	list := filepath.Join(dir, "overlay.json")
	write := func() {
		t.Helper()
		b, err := json.Marshal(overlay)
		must(t, err)
		must(t, os.WriteFile(list, b, 0o644))
	}
	write()
	tool := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	var said [2]bytes.Buffer
	suite := func(i int, args ...string) (wait func() error) {
		t.Helper()
		bin := filepath.Join(dir, "webdav.test"+strconv.Itoa(i))
		tool("test", "-vet=off", "-overlay", list, "-c", "-o", bin, "./system/webdav")
		c := exec.CommandContext(t.Context(), bin, append(args, "-test.v", "-test.timeout=5m")...)
		c.Dir = dir // the package's own is not there, which vet would need, too
		c.Stdout, c.Stderr = &said[i], &said[i]
		must(t, c.Start())
		return c.Wait
	}
	tool("build", "-overlay", list, "./system/all")
	whole := suite(0)

	// What the page says of a put that is one request, built while the suite waits for processes.
	node := files["system/webdav/node.go"]
	from, to := strings.Index(node, "\tpart := n.at("), strings.Index(node, "\treturn ref, nil")
	if from < 0 || to < from {
		t.Fatal("the page's Put is not what it was")
	}
	lay("system/webdav/node.go",
		strings.Replace(node[:from]+"\t_, err = n.Client.Send(ctx, http.MethodPut, whole, size, r)\n\treturn ref, "+
			"err"+node[to+len("\treturn ref, nil"):], "\t\"crypto/rand\"\n", "", 1))
	write()
	_ = suite(1, "-test.run=TestConformance/shared/(torn|sizes)")()
	for _, want := range []string{"--- FAIL: TestConformance/shared/torn ", "--- PASS: TestConformance/shared/sizes "} {
		if !strings.Contains(said[1].String(), want) {
			t.Errorf("with a put of one request: no %q in\n%s", want, &said[1])
		}
	}
	if err := whole(); err != nil {
		t.Errorf("%v\n%s", err, &said[0])
	}
	for _, name := range []string{"cut_off", "killed_in_a_get", "ranges", "stat", "redial", "port_in_use", "torn"} {
		if !regexp.MustCompile(`--- PASS: TestConformance/(shared/)?` + name + ` `).Match(said[0].Bytes()) {
			t.Errorf("case %s did not pass in\n%s", name, &said[0])
		}
	}
}
