// Command release builds the files of a release: for each architecture an archive with a static
// binary, its completions and all licences, and a bill of materials (CycloneDX); a container image
// of all architectures; and the checksums of all files. The same commit, built with the same Go,
// gives the same bytes anywhere.
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
	if err := attempt(func() {
		if *image == "" {
			run(ctx, *out, strings.Split(*arches, ","))
			return
		}
		index := addImage(empty.Index, runtime.GOARCH, *of, nil, time.Unix(0, 0))
		writeImage(*image, "test", index, time.Unix(0, 0))
	}); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// failure is an error that ends the program, because none can be handled. Deferred calls still run.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the result of a call, and ends the program if the call failed.
func must[T any](result T, err error) T {
	check(err)
	return result
}

// attempt returns the failure of do, or nil.
func attempt(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(failure).error // any other panic goes on: the type assertion panics
		}
	}()
	do()
	return nil
}

// run builds all archives, then writes the checksums.
func run(ctx context.Context, out string, arches []string) {
	version, when := commit(ctx)
	check(os.MkdirAll(out, 0o755))
	work := must(os.MkdirTemp("", "plimsoll-release-"))
	defer os.RemoveAll(work)
	completions := completions(ctx, filepath.Join(work, "host"), version, when)
	var made []string
	var image v1.ImageIndex = empty.Index
	for _, arch := range arches {
		fmt.Println("building", version, "for linux", arch)
		binary := filepath.Join(work, "plimsoll-"+arch)
		build(ctx, binary, version, arch)
		name := "plimsoll_" + strings.TrimPrefix(version, "v") + "_linux_" + arch
		bill := filepath.Join(out, name+".cdx.json")
		writeBill(bill, binary, version, when)
		parts := append([]module{{name: "Go", dir: output(ctx, nil, "go", "env", "GOROOT")}}, modules(ctx, arch)...)
		notices := []entry{{name: "THIRD_PARTY_LICENCES", data: licences(append(parts, bundled("web")...))}}
		for _, doc := range []string{"README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"} {
			notices = append(notices, entry{name: doc, path: doc})
		}
		files := slices.Concat([]entry{{name: "plimsoll", path: binary, mode: 0o755}}, notices, completions)
		image = addImage(image, arch, binary, notices, when)
		archive := filepath.Join(out, name+".tar.gz")
		writeArchive(archive, name, files, when)
		made = append(made, archive, bill)
	}
	path := filepath.Join(out, "plimsoll_"+strings.TrimPrefix(version, "v")+"_image.tar")
	writeImage(path, version, image, when)
	writeSums(filepath.Join(out, "SHA256SUMS"), append(made, path))
}

// commit returns the version and time of the commit that is checked out. Files get that time, so
// that an archive does not depend on when it was built.
func commit(ctx context.Context) (version string, when time.Time) {
	if attempt(func() { version = output(ctx, nil, "git", "describe", "--tags", "--dirty") }) != nil {
		// A semantic version even before the first tag.
		version = "v0.0.0-g" + output(ctx, nil, "git", "describe", "--always", "--dirty")
	}
	seconds := must(strconv.ParseInt(output(ctx, nil, "git", "log", "-1", "--format=%ct"), 10, 64))
	return version, time.Unix(seconds, 0).UTC()
}

// build builds a static binary that contains no paths of this machine. The version is the only
// version control information in it, because a source archive has no repository.
func build(ctx context.Context, out, version, arch string) {
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT="}
	output(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X main.version="+version, "-o", out, "./cmd/plimsoll")
}

// completions returns the shells' completion scripts and the man page, as printed by the program.
func completions(ctx context.Context, binary, version string, when time.Time) (files []entry) {
	build(ctx, binary, version, runtime.GOARCH)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := output(ctx, nil, binary, "completion", shell)
		files = append(files, entry{name: "completions/plimsoll." + shell, data: []byte(script + "\n")})
	}
	return append(files, manual(ctx, binary, version, when))
}

// output runs a command in the repository and returns its output without surrounding white space.
func output(ctx context.Context, env []string, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	c.Stderr = &stderr
	b, err := c.Output()
	if err != nil {
		check(fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String())))
	}
	return strings.TrimSpace(string(b))
}

// manual returns the man page plimsoll.1, with the help texts of the program and of each command.
func manual(ctx context.Context, binary, version string, when time.Time) entry {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH PLIMSOLL 1 %q %q\n.SH NAME\nplimsoll \\- measures decentralized storage\n.SH SYNOPSIS\n",
		when.Format(time.DateOnly), "plimsoll "+version)
	fmt.Fprintf(&b, ".B plimsoll\nCOMMAND [ARGUMENT]...\n.SH DESCRIPTION\n%s.SH COMMANDS\n",
		verbatim(output(ctx, nil, binary, "--help")))
	for line := range strings.Lines(output(ctx, nil, binary, "__complete", "")) {
		name, _, is := strings.Cut(strings.TrimSpace(line), "\t")
		if !is || name == "help" || name == "completion" {
			continue
		}
		fmt.Fprintf(&b, ".SS %s\n%s", name, verbatim(output(ctx, nil, binary, name, "--help")))
	}
	return entry{name: "man/plimsoll.1", data: []byte(b.String())}
}

// verbatim returns text in a form that troff prints unchanged.
func verbatim(text string) string {
	var b strings.Builder
	b.WriteString(".in 0\n.nf\n")
	for line := range strings.Lines(text) {
		b.WriteString(`\&` + strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String() + ".fi\n.in\n"
}
