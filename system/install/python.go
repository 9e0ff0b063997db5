package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// Interpreter is the Python named in the first line of a script, and under which
// its libraries are found; empty when bin is something else, or cannot be read.
func Interpreter(bin string) string {
	f, err := os.Open(bin)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := f.Read(head) // what cannot be read is no script
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	path, ok := bytes.CutPrefix(line, []byte("#!"))
	python := strings.TrimSpace(string(path))
	if !ok || strings.ContainsRune(python, ' ') || !strings.Contains(filepath.Base(python), "python") {
		return ""
	}
	return python
}
