// Command release builds what is handed to users: for each architecture a static
// binary in an archive with its completions and all licences, a bill of materials
// (CycloneDX); a container image of all architectures; and the checksums of
// everything. The same commit, built with the same Go, gives the same bytes anywhere.
//
//	go run ./release -out dist
//	go run ./release -image plimsoll.tar -of bin/plimsoll   # an image of this program alone, for tests
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
)

func main() {
	out := flag.String("out", "dist", "directory for the files; it is made")
	arches := flag.String("arch", "amd64,arm64", "architectures of Linux to build for")
	image := flag.String("image", "", "write nothing but a container image of the program -of, with tag test")
	of := flag.String("of", "bin/plimsoll", "a static program of this machine's architecture")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *image == "" {
		err = run(ctx, *out, strings.Split(*arches, ","))
	} else {
		err = imageOf(*of, *image)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// imageOf makes an image of a program for this machine.
func imageOf(program, path string) error {
	index, err := addImage(empty.Index, runtime.GOARCH, program, nil, time.Unix(0, 0))
	if err != nil {
		return err
	}
	return writeImage(path, "test", index, time.Unix(0, 0))
}

// run builds every archive, then writes the checksums.
func run(ctx context.Context, out string, arches []string) error {
	version, when, err := commit(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "plimsoll-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	completions, err := completions(ctx, filepath.Join(work, "host"), version, when)
	if err != nil {
		return err
	}
	var made []string
	var image v1.ImageIndex = empty.Index
	for _, arch := range arches {
		fmt.Println("building", version, "for linux", arch)
		binary := filepath.Join(work, "plimsoll-"+arch)
		if err := build(ctx, binary, version, arch); err != nil {
			return err
		}
		name := "plimsoll_" + strings.TrimPrefix(version, "v") + "_linux_" + arch
		bill := filepath.Join(out, name+".cdx.json")
		mods, err := modules(ctx, arch)
		if err != nil {
			return err
		}
		if err := writeBill(bill, binary, version, when); err != nil {
			return err
		}
		licences, err := licences(mods, "web")
		if err != nil {
			return err
		}
		notices := []entry{{name: "THIRD_PARTY_LICENCES", data: licences}}
		for _, doc := range []string{"README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"} {
			notices = append(notices, entry{name: doc, path: doc})
		}
		files := slices.Concat([]entry{{name: "plimsoll", path: binary, mode: 0o755}}, notices, completions)
		if image, err = addImage(image, arch, binary, notices, when); err != nil {
			return err
		}
		archive := filepath.Join(out, name+".tar.gz")
		if err := writeArchive(archive, name, files, when); err != nil {
			return err
		}
		made = append(made, archive, bill)
	}
	path := filepath.Join(out, "plimsoll_"+strings.TrimPrefix(version, "v")+"_image.tar")
	if err := writeImage(path, version, image, when); err != nil {
		return err
	}
	made = append(made, path)
	return writeSums(filepath.Join(out, "SHA256SUMS"), made)
}

// commit is the version and the time of what is checked out. Files get that time,
// so that an archive does not depend on when it was made.
func commit(ctx context.Context) (version string, when time.Time, err error) {
	if version, err = output(ctx, nil, "git", "describe", "--tags", "--dirty"); err != nil {
		// Before the first tag it is a semantic version, too.
		if version, err = output(ctx, nil, "git", "describe", "--always", "--dirty"); err != nil {
			return "", when, err
		}
		version = "v0.0.0-g" + version
	}
	seconds, err := output(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return "", when, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return version, time.Unix(n, 0).UTC(), err
}

// build makes a static binary without paths of this machine. Version control is
// named by version alone: a source archive has no repository to stamp from.
func build(ctx context.Context, out, version, arch string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT="}
	_, err := output(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X main.version="+version, "-o", out, "./cmd/plimsoll")
	return err
}

// completions are the scripts for the shells and the man page, as the program itself writes them.
func completions(ctx context.Context, binary, version string, when time.Time) ([]entry, error) {
	if err := build(ctx, binary, version, runtime.GOARCH); err != nil {
		return nil, err
	}
	var files []entry
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(ctx, nil, binary, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: "completions/plimsoll." + shell, data: []byte(script + "\n")})
	}
	page, err := manual(ctx, binary, version, when)
	return append(files, page), err
}

// output runs a command in the repository and returns what it prints, without the
// space around it.
func output(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	c.Stderr = &stderr
	b, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(b)), nil
}
