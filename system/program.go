package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
