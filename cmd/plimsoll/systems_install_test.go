package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system/all"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func nginxImage(t *testing.T) v1.Image {
	t.Helper()
	return imagetest.OfMachine(t, "/usr/lib/nginx", "/usr/share/nginx", "/usr/sbin/nginx")
}

// From the name of an image in an experiment to the digest in the record.
func TestImages(t *testing.T) {
	need(t, "nginx")
	t.Parallel()
	dir := t.TempDir()
	env := append(os.Environ(), "PLIMSOLL_TEST_MAIN=1", testbed.CacheVariable+"="+filepath.Join(dir, "cache"),
		"XDG_DATA_HOME="+filepath.Join(dir, "data"))
	img := nginxImage(t)
	digest, err := img.Digest()
	must(t, err)
	ref := imagetest.Push(t, imagetest.Registry(t), img)
	file := filepath.Join(dir, "one.yaml")
	text := "scenario: retrieve\nsystems: [{use: nginx, with: {image: \"" + ref + "\"}}]\ndata: {size: 100kB}\n" +
		"repetitions: 1\nwarmup: 0\nretrieve: {concurrency: 1, requests: 3}\n" +
		"limits: {others: none, machine: none}\nskip: [machine]\n"
	must(t, os.WriteFile(file, []byte(text), 0o644))
	plimsoll := func(want string, status int, args ...string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir, cmd.Env = dir, env
		out, _ := cmd.CombinedOutput()
		got := cmd.ProcessState.ExitCode()
		if status == 0 && got == int(ui.CodeInvalid) { // the machine is busy
			got = 0
		}
		if got != status || !strings.Contains(string(out), want) {
			t.Fatalf("plimsoll %v: status %d, want %d and %q:\n%s", args, got, status, want, out)
		}
	}
	plimsoll(ref+": ", 0, "plan", file)
	plimsoll("to pull", 3, "doctor", file)
	plimsoll("add --pull", 3, "run", file, "--out", "without")
	plimsoll("image", 2, "plan", file, "--set", "systems.0.with.image=A!")
	plimsoll("is here", 0, "run", file, "--pull", "--keep-going", "--out", "with")
	r, err := record.Open(filepath.Join(dir, "with"))
	must(t, err)
	defer r.Close()
	if got := r.Meta()["systems"]; !strings.Contains(got, `"image":"`+ref+"@"+digest.String()+`"`) {
		t.Errorf("the record has %s", got)
	}

	// For a system, from the registry and from a file.
	plimsoll("--image and --image-dir are for one system", 2, "systems", "install", "nginx", "kubo", "--image", ref)
	plimsoll("cannot be installed", 2, "systems", "install", "static", "--image", ref)
	plimsoll("name one: --image", 2, "systems", "install", "siad")
	plimsoll("is here", 0, "systems", "install", "nginx", "--image", ref)
	plimsoll(ref+"@"+digest.String(), 0, "systems", "nginx")
	plimsoll("image, ", 0, "systems")
	saved := filepath.Join(dir, "saved.tar")
	tag, _ := name.NewTag("nginx:saved")
	must(t, tarball.WriteToFile(saved, tag, img))
	plimsoll("image local/nginx@sha256:", 0, "systems", "install", "nginx", "--image-dir", saved)
	plimsoll("@"+digest.String(), 0, "systems", "nginx")

	// Through a proxy: no other way leads to that registry.
	_, at, _ := strings.Cut(ref, "/")
	proxied := "registry.localhost:1/" + at
	plimsoll("image "+proxied, 3, "systems", "install", "nginx", "--image", proxied)
	env = append(env, "http_proxy=http://"+strings.TrimSuffix(ref, "/"+at))
	plimsoll("is here", 0, "systems", "install", "nginx", "--image", proxied)
	plimsoll("saved.tar", 3, "systems", "install", "kubo", "--image-dir", saved+"/saved.tar")
}

// The images that are taken by default are names that a registry understands.
func TestDefaultImages(t *testing.T) {
	for _, s := range all.All() {
		i := s.Info()
		if i.Image == "" {
			continue
		}
		if _, err := name.ParseReference(i.Image); err != nil {
			t.Errorf("%s: %v", i.Name, err)
		}
		if opt, err := i.Fill(nil); err != nil || opt["image"] != "" {
			t.Errorf("%s: %v, %v", i.Name, opt, err)
		}
	}
}
