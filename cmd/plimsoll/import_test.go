package main

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// repeated is text, again and again, of which n bytes can be read.
type repeated struct {
	text string
	at   int
	n    int64
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) && r.n > 0 {
		p[n] = r.text[r.at%len(r.text)]
		n, r.at, r.n = n+1, r.at+1, r.n-1
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A small file that becomes a large one does not take the machine's memory.
func TestAnImportTakesLittleMemory(t *testing.T) {
	const size, limit = 400 << 20, 300 << 20
	for name, c := range map[string]struct{ begin, text string }{
		"one-line.log.gz":                             {"", "a"},
		"one-record.log.gz":                           {`>>{"name":"`, "a"},
		"one-string.json.gz":                          {`{"hits":{"hits":[{"_source":{"message":"`, "a"},
		"many-documents.json.gz":                      {`{"hits":{"hits":[{}`, `,{"_source":{"message":"` + strings.Repeat("a", 10000) + `"}}`},
		"nested.json.gz":                              {`{"hits":{"hits":[`, "["},
		"one-field.csv.gz":                            {"a,b\n\"", "a"},
		"deluge_experiment_config_log_entry.jsonl.gz": {`{"a":"`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
			if err == nil {
				_, err = io.Copy(z, io.MultiReader(strings.NewReader(c.begin), &repeated{text: c.text, n: size}))
			}
			if err == nil {
				err = z.Close()
			}
			if err == nil {
				err = f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], "import", file, "--out", filepath.Join(dir, "out"))
			cmd.Env = append(os.Environ(), "PLIMSOLL_TEST_MAIN=1")
			said, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("imported: %s", said)
			}
			used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
			if t.Logf("%d MiB, %s", used>>20, said); used > limit {
				t.Errorf("it took %d MiB", used>>20)
			}
		})
	}
}
