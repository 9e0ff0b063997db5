package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/system/all"
)

// A password in a URL, in any option of any system or in one that is misspelt, is
// refused when the file is read, and nothing that is written holds it, whatever
// else is wrong on its line.
func TestNoCredentialsAreWritten(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	dir := t.TempDir()
	file, out := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "out")
	refused := func(src string, args ...string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(src), 0o644))
		var said bytes.Buffer
		code := run(args, strings.NewReader(""), &said, &said)
		if code != int(ui.CodeUsage) || bytes.Contains(said.Bytes(), []byte(secret)) {
			t.Errorf("%v of\n%s: status %d\n%s", args, src, code, &said)
		}
	}
	for _, s := range all.All() {
		info := s.Info()
		var names []string
		for _, o := range info.Options {
			names = append(names, o.Name)
		}
		if len(names) > 0 {
			names = append(names, names[0]+"x")
		}
		for _, name := range names {
			for _, with := range []string{
				fmt.Sprintf("{%s: \"http://user:%s@192.0.2.1/\", bogus: 1}", name, secret),
				fmt.Sprintf("{bogus: 1, %s: {%s}}", name, secret),
			} {
				head := fmt.Sprintf("scenario: upload\nsystems:\n  - {use: %s, mode: %s", info.Name,
					info.Modes[len(info.Modes)-1])
				const tail = "}\nupload: {}\ndata: {size: 1MiB}\n"
				refused(head+", with: "+with+tail, "plan", file)
				refused(head+tail, "run", file, "--out", out, "--set",
					fmt.Sprintf("systems.%s.with=%s", info.Name, with))
			}
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Fatalf("%s: a run directory was made (%v)", info.Name, err)
		}
	}
}
