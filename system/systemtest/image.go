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

// Pulled pulls an image from a registry into a cache, both only for the test, and returns its
// reference.
func Pulled(t *testing.T, img v1.Image) (reference string) {
	t.Helper()
	reference, env := PulledApart(t, img)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return reference
}

// PulledApart is Pulled for a program that gets env; the test's environment is unchanged.
func PulledApart(t *testing.T, img v1.Image) (reference string, env []string) {
	t.Helper()
	cache := t.TempDir()
	Must(t, os.Chmod(cache, 0o755))
	store := image.Store{Dir: filepath.Join(cache, "images"), Stall: 30 * time.Second}
	reference = imagetest.Push(t, imagetest.Registry(t), img)
	_, err := store.Pull(context.Background(), reference, nil)
	Must(t, err)
	return reference, []string{testbed.CacheVariable + "=" + cache}
}
