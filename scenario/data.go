package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
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

// FindRequestLog reads the log that an experiment replays, if any, and stores its summary in e.
func FindRequestLog(e *experiment.Experiment, base string) (err error) {
	if a := e.Retrieve.Replays(); a != nil {
		a.Found, _, err = ReadRequestLog(InBase(base, a.Log))
	}
	return err
}

// ReadRequestLog reads a request log and summarizes it. sizes holds the size of each path in the
// order of first occurrence: the largest end of a range that was sent. It is nil if there are
// more than experiment.MaxPaths.
func ReadRequestLog(path string) (found *experiment.RequestLog, sizes []int64, err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, nil, fmt.Errorf("retrieve.arrivals.log: %w", err)
	}
	defer f.Close()
	found = &experiment.RequestLog{}
	sum, paths := sha256.New(), workload.NewPaths()
	log := workload.NewRequestLog(io.TeeReader(f, sum), path)
	for {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("retrieve.arrivals.log: %w", err)
		}
		found.Requests++
		found.Bytes += r.Bytes
		found.Seconds = r.At.Seconds()
		if paths == nil {
			continue
		}
		i := paths.Index(r.Path)
		if i == len(sizes) {
			sizes = append(sizes, 0)
		}
		if sizes[i] = max(sizes[i], r.Offset+r.Bytes); len(sizes) > experiment.MaxPaths {
			paths, sizes = nil, nil
		}
	}
	for _, size := range sizes {
		found.Stored += size
	}
	if found.Size, err = f.Seek(0, io.SeekCurrent); err != nil {
		return nil, nil, fmt.Errorf("retrieve.arrivals.log: %w", err)
	}
	found.Unordered, found.Back = log.Unordered, log.Back.Seconds()
	found.Paths, found.Unplaced, found.Skipped = len(sizes), log.Unplaced, maps.Clone(log.Skipped)
	found.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return found, sizes, nil
}
