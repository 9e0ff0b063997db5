package systemtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
)

// Pulled brings an image from a registry of the test's own into a cache of the test's own,
// and returns its reference.
func Pulled(t *testing.T, img v1.Image) (reference string) {
	t.Helper()
	reference, env := PulledApart(t, img)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return reference
}

// PulledApart is Pulled for a program that gets env, and leaves our own environment as it is.
func PulledApart(t *testing.T, img v1.Image) (reference string, env []string) {
	t.Helper()
	cache, data := t.TempDir(), t.TempDir()
	must(t, "cache", os.Chmod(cache, 0o755))
	store := image.Store{Dir: filepath.Join(cache, "images"), Names: filepath.Join(data, "plimsoll", "images"),
		Limit: 1 << 30, Stall: 30 * time.Second}
	reference = imagetest.Push(t, imagetest.Registry(t), img)
	_, err := store.Pull(context.Background(), reference, false, nil)
	must(t, "pull", err)
	return reference, []string{testbed.CacheVariable + "=" + cache, "XDG_DATA_HOME=" + data}
}

// Existing are those of the paths that this machine has.
func Existing(paths ...string) (some []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			some = append(some, p)
		}
	}
	return some
}
