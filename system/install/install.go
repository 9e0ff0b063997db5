// Package install brings storage systems that are Python programs onto this
// machine: each into a virtual environment of its own in the user's data
// directory, from a lock that names every file by its hash. Nothing of the
// system's own Python is touched, and nothing but the named files is accepted.
package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Program is something that can be installed.
type Program struct {
	Name    string
	Version string
	Command string   // what it is found by
	Sources []string // packages that have no wheel and are built here, with what locks/build.txt names
}

// Programs lists what can be installed.
func Programs() []Program {
	return []Program{
		{Name: "tahoe", Version: "1.20.0", Command: "tahoe", Sources: []string{"netifaces"}},
		{Name: "deluge", Version: "2.2.0", Command: "deluged"},
	}
}

// ByName finds a program.
func ByName(name string) (Program, bool) {
	i := slices.IndexFunc(Programs(), func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return Programs()[i], true
}

//go:embed locks
var locks embed.FS

// Lock is the program's list of packages with versions and hashes, in the form
// that pip calls a requirements file.
func (p Program) Lock() []byte { return lockNamed(p.Name) }

func lockNamed(name string) []byte {
	b, err := locks.ReadFile("locks/" + name + ".txt")
	if err != nil {
		panic(err) // a test opens every one
	}
	return b
}

// Dir is where the program is, or would be, installed. Another lock is another
// directory, so a new Plimsoll never runs an old installation by mistake.
func (p Program) Dir() (string, error) {
	sum := sha256.Sum256(p.Lock())
	return testbed.DataDir(fmt.Sprintf("%s-%s-%s", p.Name, p.Version, hex.EncodeToString(sum[:4])))
}

// done is written last: a directory without it is what an interrupted
// installation left behind.
const done = "plimsoll-installed"

// Find is the directory of the program's commands, if it is installed.
func Find(name string) (bin string, ok bool) {
	p, known := ByName(name)
	if !known {
		return "", false
	}
	dir, err := p.Dir()
	if err != nil {
		return "", false
	}
	bin = filepath.Join(dir, "bin")
	for _, file := range []string{filepath.Join(dir, done), filepath.Join(bin, p.Command)} {
		if _, err := os.Stat(file); err != nil {
			return "", false // not ended, or someone took it away
		}
	}
	return bin, true
}

// Install brings the program here, unless it is; log gets what pip says. ctx
// bounds it.
func (p Program) Install(ctx context.Context, log io.Writer) (bin string, err error) {
	if bin, ok := Find(p.Name); ok {
		return bin, nil
	}
	dir, err := p.Dir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("%s: install: %w", p.Name, err)
	}
	unlock, err := testbed.LockFile(dir + ".lock")
	if err != nil {
		return "", fmt.Errorf("%s: install: %w", p.Name, err)
	}
	defer unlock()
	if bin, ok := Find(p.Name); ok { // another one has just ended
		return bin, nil
	}
	// A virtual environment cannot be moved once made: it is made in its place.
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("%s: remove an unfinished installation: %w", p.Name, err)
	}
	if err := p.venv(ctx, dir, log); err != nil {
		return "", errors.Join(fmt.Errorf("%s: install: %w", p.Name, err), os.RemoveAll(dir))
	}
	if err := os.WriteFile(filepath.Join(dir, done), []byte(p.Version+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("%s: install: %w", p.Name, err)
	}
	bin, ok := Find(p.Name)
	if !ok {
		return "", fmt.Errorf("%s: install: pip ended well, and there is no command %s in %s", p.Name, p.Command,
			filepath.Join(dir, "bin"))
	}
	return bin, nil
}

// last are the last lines of a command's output: what it died of.
func last(out string, n int) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Locate finds the command of a program: the one that option "binary", option "image" or the
// environment variable env names, one in an installed image, that of Install, or one in PATH.
func Locate(name string, opt system.Options, env string) (string, error) {
	p, _ := ByName(name)
	try := []string{p.Command}
	if bin, ok := Find(name); ok {
		try = []string{filepath.Join(bin, p.Command), p.Command}
	}
	return system.Program(name, opt, "binary", env, try...)
}

// Versions are those of Python packages, and of "Python", under which a program of Locate runs: its
// interpreter is asked.
func Versions(ctx context.Context, bin string, packages ...string) (python string, found map[string]string, err error) {
	if python = Interpreter(bin); python == "" {
		return "", nil, fmt.Errorf("%s is not a Python script that names its interpreter in the first line", bin)
	}
	const ask = `import importlib.metadata as m, json, platform, sys
print(json.dumps(dict({n: m.version(n) for n in sys.argv[1:]}, Python=platform.python_version())))`
	said, err := system.Output(ctx, python, append([]string{"-c", ask}, packages...)...)
	if err == nil {
		err = json.Unmarshal([]byte(last(said, 1)), &found) // before it there may be warnings
	}
	if err != nil {
		return "", nil, fmt.Errorf("ask %s for the versions of %s: %w: %s", python, strings.Join(packages, ", "), err,
			last(said, 1))
	}
	return python, found, nil
}

// Interpreter is the Python named in the first line of a script, and under which
// its libraries are found; empty when bin is something else, or cannot be read.
func Interpreter(bin string) string {
	head := make([]byte, 4096)
	n := 0
	img, program, imaged := image.Of(bin)
	if imaged {
		n, _ = img.Head(program, head)
	} else if f, err := os.Open(bin); err == nil {
		n, _ = f.Read(head) // what cannot be read is no script
		f.Close()
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	path, ok := bytes.CutPrefix(line, []byte("#!"))
	python := strings.TrimSpace(string(path))
	if !ok || strings.ContainsRune(python, ' ') || !strings.Contains(filepath.Base(python), "python") {
		return ""
	}
	if imaged {
		python, _ = img.Program(python)
	}
	return python
}
