package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A small file that becomes a large one does not take the machine's memory.
func TestAnImportTakesLittleMemory(t *testing.T) {
	t.Parallel()
	const size, limit = 400 << 20, 200 << 20
	for name, c := range map[string]struct{ begin, text string }{
		"one-line.log.gz":    {"", "a"},
		"one-record.log.gz":  {`>>{"name":"`, "a"},
		"one-string.json.gz": {`{"hits":{"hits":[{"_source":{"message":"`, "a"},
		"many-documents.json.gz": {`{"hits":{"hits":[{}`, `,{"_source":{"message":"` +
			strings.Repeat("a", 10000) + `"}}`},
		"nested.json.gz":   {`{"hits":{"hits":[`, "["},
		"one-field.csv.gz": {"a,b\n\"", "a"},
		"deluge_experiment_config_log_entry.jsonl.gz": {`{"a":"`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			member := func(text string) []byte {
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				_, err := io.WriteString(z, text)
				must(t, errors.Join(err, z.Close()))
				return b.Bytes()
			}
			text := strings.Repeat(c.text, 1<<20/len(c.text))
			src := append(member(c.begin), bytes.Repeat(member(text), size/len(text))...)
			must(t, os.WriteFile(file, src, 0o600))
			cmd := exec.Command(os.Args[0], "import", file, "--out", filepath.Join(dir, "out"))
			status := filepath.Join(dir, "status")
			cmd.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", "PLIMSOLL_TEST_STATUS="+status)
			said, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("imported: %s", said)
			}
			var used int64 // KiB; the kernel's account of a child begins with its parent's
			for line := range strings.Lines(string(mustRead(t, status))) {
				fmt.Sscanf(line, "VmHWM: %d kB", &used)
			}
			if t.Logf("%d MiB, %s", used>>10, said); used == 0 || used > limit>>10 {
				t.Errorf("it took %d MiB", used>>10)
			}
		})
	}
}
