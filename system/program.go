package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Program finds a program of the system called name: the program that the option, image or
// environment variable specifies, otherwise the first of try that exists in the image installed for
// the system, in PATH, or as a path. With option "image", the value of the option is looked up in
// the image.
func Program(name string, opt Options, option, env string, try ...string) (string, error) {
	if ref := opt[ImageName]; ref != "" {
		if opt[option] != "" {
			try = []string{opt[option]}
		}
		return inImage(name, try, func(s image.Store) (image.Image, error) { return s.Find(ref) })
	}
	by, path := "option `"+option+"`", opt[option]
	if path == "" {
		by, path = env, os.Getenv(env)
	}
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w", name, by, err)
		}
		return filepath.Abs(found)
	}
	if _, err := image.Default(); err == nil { // otherwise there is no directory for images
		path, err := inImage(name, try, func(s image.Store) (image.Image, error) { return s.Installed(name) })
		if !errors.Is(err, image.ErrAbsent) {
			return path, err
		}
	}
	for _, program := range try {
		if path, err := exec.LookPath(program); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s: not found in PATH: %s", name, strings.Join(try, ", "))
}

func inImage(name string, try []string, find func(image.Store) (image.Image, error)) (path string, err error) {
	store, err := image.Default()
	if err == nil {
		var i image.Image
		if i, err = find(store); err == nil {
			path, err = i.Program(try...)
		}
	}
	if errors.Is(err, image.ErrAbsent) {
		err = fmt.Errorf("%w: run with --pull to bring it", err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return path, nil
}

// ImageName is the option of all systems whose program can come from a container image.
const ImageName = "image"

// versionTime limits the version query of a program: a cold start of Python takes seconds on a busy
// machine.
const versionTime = time.Minute

// Output returns the output of a short-lived program, such as its version.
func Output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Says runs a program with args that make it print its version, and returns an error unless the
// output contains want: otherwise it is not the system's program.
func Says(ctx context.Context, name, program, want string, args ...string) error {
	out, err := Output(ctx, program, args...)
	if strings.Contains(out, want) {
		return nil
	}
	err = cmp.Or(err, fmt.Errorf("it says %.60q", out))
	return fmt.Errorf("%s: %s is not the program of this system: `%s %s`: %w", name, program, program,
		strings.Join(args, " "), err)
}
