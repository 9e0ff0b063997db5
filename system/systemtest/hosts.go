package systemtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest/imagetest"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
	"github.com/plimsoll-project/plimsoll/testbed/image"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Hosts returns n hosts on plain loopback: systems are tested here, not links.
func Hosts(t *testing.T, n int) []testbed.Host {
	t.Helper()
	return HostsOf(t, testbed.Options{Plain: true}, n)
}

// HostsOf returns the hosts of [Bed].
func HostsOf(t *testing.T, opt testbed.Options, n int) []testbed.Host {
	t.Helper()
	_, hosts := Bed(t, opt, n)
	return hosts
}

// SlowHosts returns n hosts in namespaces with links of rate bit/s, and a function that gives their
// links another rate.
func SlowHosts(t *testing.T, rate float64, n int) (hosts []testbed.Host, shape func(rate float64)) {
	t.Helper()
	tb, hosts := Bed(t, testbed.Options{}, n)
	if mode := tb.Mode(); mode.Emulator == "none" {
		t.Skip(mode.Why)
	}
	shape = func(rate float64) {
		links := map[string]link.Params{}
		for _, h := range hosts {
			links[h.Addr().String()] = link.Params{Rate: rate}
		}
		Must(t, tb.Shape(Context(t), testbed.ShapeSpec{Topology: link.Topology{Up: links, Down: links}}))
	}
	shape(rate)
	return hosts, shape
}

// Bed returns a testbed that ends with the test, and n hosts of it. It skips the test if namespaces
// are required but not available on this machine.
func Bed(t *testing.T, opt testbed.Options, n int) (*testbed.Testbed, []testbed.Host) {
	t.Helper()
	opt.Dir = t.TempDir()
	opt.Hosts = agent.Wanted()
	tb, err := testbed.New(Context(t), opt)
	Must(t, err)
	AtEnd(t, "close the testbed", tb.Close)
	if mode := tb.Mode(); !opt.Plain && !mode.Namespaces {
		t.Skip(mode.Why)
	}
	hosts := make([]testbed.Host, n)
	for i := range hosts {
		hosts[i], err = tb.AddHost(Context(t), fmt.Sprintf("h%d", i+1))
		Must(t, err)
	}
	return tb, hosts
}

// wantHostDirs checks that the directory of a deployment contains only the directories of its
// hosts.
func (k kit) wantHostDirs(d system.Deployment) {
	all, err := os.ReadDir(d.Dir)
	k.must("directory of the deployment", err)
	for _, e := range all {
		if !slices.ContainsFunc(append(d.Hosts, d.Client), func(h testbed.Host) bool { return h.Name() == e.Name() }) {
			k.Errorf("%s is no host's, and below the directory of the deployment", e.Name())
		}
	}
}

// Pulled pulls an image from a registry into a cache, both only for the test, and returns its
// reference.
func Pulled(t *testing.T, img v1.Image) (reference string) {
	t.Helper()
	reference, cache := PulledApart(t, img)
	t.Setenv(testbed.CacheVariable, cache)
	return reference
}

// PulledApart is Pulled for a program that gets the cache; the test's environment is unchanged.
func PulledApart(t *testing.T, img v1.Image) (reference, cache string) {
	t.Helper()
	cache = t.TempDir()
	Must(t, os.Chmod(cache, 0o755))
	store := image.Store{Dir: filepath.Join(cache, "images"), Stall: 30 * time.Second}
	reference = imagetest.Push(t, imagetest.Registry(t), img)
	_, err := store.Pull(context.Background(), reference, nil)
	Must(t, err)
	return reference, cache
}
