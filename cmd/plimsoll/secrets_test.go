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
	const secret = "hunter2"
	dir := t.TempDir()
	file, out := filepath.Join(dir, "f.yaml"), filepath.Join(dir, "out")
	for _, s := range all.All() {
		info := s.Info()
		var names []string
		for _, o := range info.Options {
			names = append(names, o.Name, o.Name[:len(o.Name)-1]+"x")
		}
		for _, name := range names {
			for _, with := range []string{
				fmt.Sprintf("{%s: \"http://user:%s@192.0.2.1/\"}", name, secret),
				fmt.Sprintf("{%s: \"http://user:%s@192.0.2.1/\", bogus: 1}", name, secret),
				fmt.Sprintf("{bogus: 1, %s: {%s}}", name, secret),
			} {
				const head, tail = "scenario: upload\nsystems:\n  - {use: %s, mode: %s%s}\n", "upload: {}\ndata: {size: 1MiB}\n"
				mode := info.Modes[len(info.Modes)-1]
				written := []byte(fmt.Sprintf(head, info.Name, mode, ", with: "+with) + tail)
				bare := []byte(fmt.Sprintf(head, info.Name, mode, "") + tail)
				set := []string{"--set", fmt.Sprintf("systems.%s.with=%s", info.Name, with)}
				for _, c := range []struct {
					src  []byte
					args []string
				}{
					{written, []string{"plan", file}}, {written, []string{"run", file, "--out", out}},
					{bare, append([]string{"plan", file}, set...)}, {bare, append([]string{"run", file, "--out", out}, set...)},
				} {
					if err := os.WriteFile(file, c.src, 0o644); err != nil {
						t.Fatal(err)
					}
					var said bytes.Buffer
					code := run(c.args, strings.NewReader(""), &said, &said)
					if code != int(ui.CodeUsage) {
						t.Errorf("%s %s: status %d", info.Name, with, code)
					}
					if bytes.Contains(said.Bytes(), []byte(secret)) {
						t.Errorf("%s %s: %s", info.Name, with, &said)
					}
				}
			}
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Fatalf("%s: a run directory was made (%v)", info.Name, err)
		}
	}
}
