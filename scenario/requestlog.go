package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/workload"
)

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
