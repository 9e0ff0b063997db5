package systemtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/image"
	"github.com/plimsoll-project/plimsoll/testbed/image/imagetest"
)

// Pulled brings an image from a registry of the test's own into a cache of the test's own,
// and returns its reference.
func Pulled(t *testing.T, img v1.Image) (reference string) {
	t.Helper()
	dir := t.TempDir()
	must(t, "cache", os.Chmod(dir, 0o755))
	t.Setenv(testbed.CacheVariable, dir)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	store, err := image.Default()
	must(t, "cache", err)
	reference = imagetest.Push(t, imagetest.Registry(t), img)
	_, err = store.Pull(context.Background(), reference, false, nil)
	must(t, "pull", err)
	return reference
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
