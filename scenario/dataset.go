package scenario

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/workload"
)

// DataSet builds the data set of a cell, which depends only on the data and the seed. base is
// the directory of relative paths. Errors name the file that cannot be read. Listing a large
// tree takes a while.
func DataSet(ctx context.Context, d experiment.Data, seed uint64, base string) (workload.Set, error) {
	copies := max(1, d.Copies)
	var sizes workload.Sizes
	var names func(i int) string
	switch d.Source() {
	case "directory":
		return workload.ReadDirectory(ctx, InBase(base, d.Directory), copies)
	case "trace":
		trace, err := readTrace(InBase(base, d.Trace))
		if err != nil {
			return nil, err
		}
		sizes, names = trace, trace.Name
	case "mix":
		buckets := make([]workload.Bucket, len(d.Mix))
		for i, m := range d.Mix {
			from, to := m.Range()
			buckets[i] = workload.Bucket{Weight: float64(m.Share), From: int64(from), To: int64(to)}
		}
		sizes = workload.NewSpread(d.Objects, seed, buckets...)
	case "size":
		sizes = workload.Fixed{Objects: d.Objects, Bytes: int64(d.Size)}
	default:
		return nil, errors.New("the experiment has no data set: give data.size, mix, directory or trace, " +
			"and allow: [write] for attached systems")
	}
	return workload.NewSynthetic(sizes, names, seed, copies), nil
}

// InBase returns a path of the experiment file; relative ones start at base.
func InBase(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func readTrace(path string) (*workload.Trace, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, fmt.Errorf("data.trace: %w", err)
	}
	defer f.Close()
	return workload.ReadTrace(f, path, func(text string) (int64, error) {
		n, err := experiment.ParseBytes(text)
		return int64(n), err
	})
}

// openRegular opens a regular file. Others are an error, since opening a pipe may block.
func openRegular(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// MixSeed derives a separate seed for each purpose and n. The word "overhead" in it is only a constant.
func MixSeed(seed uint64, purpose string, n int64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/overhead/%s/%d", seed, purpose, n)
	return h.Sum64()
}
