// Package install installs storage systems that are Python programs: each in its own virtual
// environment in the user's data directory, from a lock file that lists every file with its hash.
// It does not change the system's Python, and accepts only the listed files.
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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Program is a program that can be installed.
type Program struct {
	Name    string
	Version string
	Command string   // name of its executable
	Sources []string // packages without a wheel, built here with the packages in locks/build.txt
}

// Programs returns the programs that can be installed.
func Programs() []Program {
	return []Program{
		{Name: "tahoe", Version: "1.20.0", Command: "tahoe", Sources: []string{"netifaces"}},
		{Name: "deluge", Version: "2.2.0", Command: "deluged"},
	}
}

// ByName returns a program.
func ByName(name string) (Program, bool) {
	i := slices.IndexFunc(Programs(), func(p Program) bool { return p.Name == name })
	if i < 0 {
		return Program{}, false
	}
	return Programs()[i], true
}

//go:embed locks
var locks embed.FS

// Lock returns the program's list of packages with versions and hashes, in the form of a pip
// requirements file.
func (p Program) Lock() []byte { return lockNamed(p.Name) }

func lockNamed(name string) []byte {
	b, err := locks.ReadFile("locks/" + name + ".txt")
	if err != nil {
		panic(err) // a test opens all of them
	}
	return b
}

// Dir returns the directory of the program's installation, whether or not it exists. It depends on
// the lock file, so that a new Plimsoll never runs an old installation by mistake.
func (p Program) Dir() (string, error) {
	sum := sha256.Sum256(p.Lock())
	return testbed.DataDir(fmt.Sprintf("%s-%s-%s", p.Name, p.Version, hex.EncodeToString(sum[:4])))
}

// done is the file that is written last: a directory without it is from an interrupted
// installation.
const done = "plimsoll-installed"

// Find returns the directory of the program's commands if it is installed.
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
			return "", false // unfinished, or removed by a user
		}
	}
	return bin, true
}

// Install installs the program unless it is installed; log receives the output of pip.
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
	if bin, ok := Find(p.Name); ok { // another process has just installed it
		return bin, nil
	}
	// A virtual environment cannot be moved later, so it is created at its final path.
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

// oldest is the oldest Python for which every lock file lists files.
const oldest = "3.10"

// venv creates a virtual environment in dir and installs exactly the packages in the lock file.
func (p Program) venv(ctx context.Context, dir string, log io.Writer) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("there is no python3 in PATH; install Python %s or newer (on Debian: apt-get install "+
			"python3-venv)", oldest)
	}
	if err := run(ctx, log, python, "-m", "venv", dir); err != nil {
		return fmt.Errorf("make a virtual environment: %w; on Debian: apt-get install python3-venv", err)
	}
	return pipInstall(ctx, dir, log, p.Lock(), lockNamed("build"), p.Sources)
}

// pipInstall installs exactly the packages in lock into the virtual environment dir. It builds only
// the packages named in sources, with the packages in the lock file build: without
// --no-build-isolation, pip would fetch the newest version of anything that a build requires.
func pipInstall(ctx context.Context, dir string, log io.Writer, lock, build []byte, sources []string) error {
	install := func(name string, lock []byte, more ...string) error {
		list := filepath.Join(dir, name)
		if err := os.WriteFile(list, lock, 0o644); err != nil {
			return err
		}
		// --no-deps: the lock file is complete, and nothing else may be installed.
		args := append([]string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input",
			"--require-hashes", "--no-deps", "--only-binary", ":all:"}, more...)
		return run(ctx, log, filepath.Join(dir, "bin", "python"), append(args, "-r", list)...)
	}
	if len(sources) == 0 {
		return install("lock.txt", lock)
	}
	if err := install("build.txt", build); err != nil {
		return err
	}
	return install("lock.txt", lock, "--no-binary", strings.Join(sources, ","), "--no-build-isolation", "--use-pep517")
}

// run executes a command; its error ends with the last lines of the command's output.
func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = io.MultiWriter(log, &out)
	cmd.Stderr = cmd.Stdout
	// pip starts compilers: when we stop, the whole process group is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", filepath.Base(name), context.Cause(ctx))
	}
	return errors.Join(fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), err),
		errors.New(last(out.String(), 8)))
}

// last returns the last lines of a command's output, which contain the reason of a failure.
func last(out string, n int) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Locate finds the command of a program: the one named by option "binary", option "image" or the
// environment variable env, or else one in an installed image, the one that Install installed, or
// one in PATH.
func Locate(name string, opt system.Options, env string) (string, error) {
	p, _ := ByName(name)
	try := []string{p.Command}
	if bin, ok := Find(name); ok {
		try = []string{filepath.Join(bin, p.Command), p.Command}
	}
	return system.Program(name, opt, "binary", env, try...)
}

// Versions locates a program, and returns the versions of Python packages, and of "Python", with
// which it runs. It runs the program's interpreter to find them.
func Versions(ctx context.Context, name string, opt system.Options, env string, packages ...string) (
	bin, python string, found map[string]string, err error) {
	if bin, err = Locate(name, opt, env); err != nil {
		return "", "", nil, err
	}
	if python = Interpreter(bin); python == "" {
		return "", "", nil, fmt.Errorf("%s is not a Python script that names its interpreter in the first line", bin)
	}
	const ask = `import importlib.metadata as m, json, platform, sys
print(json.dumps(dict({n: m.version(n) for n in sys.argv[1:]}, Python=platform.python_version())))`
	said, err := system.Output(ctx, python, append([]string{"-c", ask}, packages...)...)
	if err == nil {
		err = json.Unmarshal([]byte(last(said, 1)), &found) // warnings may precede it
	}
	if err != nil {
		err = fmt.Errorf("ask %s for the versions of %s: %w: %s", python, strings.Join(packages, ", "), err,
			last(said, 1))
	}
	return bin, python, found, err
}

// Interpreter returns the Python named in the first line of a script, which also finds the script's
// libraries. It is empty if bin is no such script or cannot be read.
func Interpreter(bin string) string {
	head := make([]byte, 4096)
	n := 0
	img, program, imaged := image.Of(bin)
	if imaged {
		n, _ = img.Head(program, head)
	} else if f, err := os.Open(bin); err == nil {
		n, _ = f.Read(head) // an unreadable file is no script
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
