package system

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program finds a program of the system called name: the one that [Named] says,
// or else the first of try that is in PATH or at the path it is.
func Program(name string, opt Options, option, env string, try ...string) (string, error) {
	if path, err := Named(name, opt, option, env); path != "" || err != nil {
		return path, err
	}
	for _, program := range try {
		if path, err := exec.LookPath(program); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s: not found in PATH: %s", name, strings.Join(try, ", "))
}

// Named is the path of the program that an option or else an environment
// variable names; empty when neither does.
func Named(name string, opt Options, option, env string) (string, error) {
	for _, named := range []struct{ by, path string }{{"option `" + option + "`", opt[option]}, {env, os.Getenv(env)}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w", name, named.by, err)
		}
		return filepath.Abs(path)
	}
	return "", nil
}

// versionTime bounds asking a program for its version: a cold start of Python takes
// seconds on a busy machine.
const versionTime = time.Minute

// Says runs a program with args, which ask for its version, and fails unless the
// answer has want in it: then it is another program than the system's.
func Says(ctx context.Context, name, program, want string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), want) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %s is not the program of this system: `%s %s` fails: %w", name, program, program, strings.Join(args, " "), err)
	}
	return fmt.Errorf("%s: %s is not the program of this system: `%s %s` says %.60q", name, program, program, strings.Join(args, " "), out)
}
