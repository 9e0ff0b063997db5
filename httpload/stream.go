package httpload

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
)

// The stream that a load process writes: frames of one byte of kind, four bytes
// of length (little endian) and the payload. It ends with a result or an error.
const (
	frameBlock    = 'B' // operations, as record.AppendBlock encodes them
	frameProgress = 'P' // Progress, JSON
	frameResult   = 'R' // Result, JSON
	frameError    = 'E' // text
)

// maxFrame bounds what a reader takes for a frame.
const maxFrame = 64 << 20

// frameWriter writes frames; it is an OpSink.
type frameWriter struct {
	mu    sync.Mutex
	w     *bufio.Writer
	block []byte
}

func (f *frameWriter) write(kind byte, p []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := [5]byte{kind}
	binary.LittleEndian.PutUint32(head[1:], uint32(len(p)))
	f.w.Write(head[:])
	f.w.Write(p)
	return f.w.Flush()
}

func (f *frameWriter) writeJSON(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.write(kind, b)
}

// Ops implements [record.OpSink].
func (f *frameWriter) Ops(ops []record.Op) error {
	f.block = record.AppendBlock(f.block[:0], ops)
	return f.write(frameBlock, f.block)
}

// Serve is `plimsoll node load`: it reads a Spec (JSON) from stdin, runs it,
// and writes frames for [ReadStream] to stdout. stdin stays open as long as the
// parent lives; when it ends, or ctx does, operations under way are recorded as
// cancelled and the result follows.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &frameWriter{w: bufio.NewWriterSize(stdout, 64<<10)}
	err := serve(ctx, cancel, stdin, out)
	if err != nil {
		// The parent learns it from the stream; what cannot be written there is
		// in our own exit code.
		err = errors.Join(err, out.write(frameError, []byte(err.Error())))
	}
	return err
}

func serve(ctx context.Context, cancel context.CancelFunc, stdin io.Reader, out *frameWriter) error {
	var s Spec
	d := json.NewDecoder(stdin)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("httpload: read the specification from stdin: %w", err)
	}
	go func() {
		io.Copy(io.Discard, stdin)
		cancel()
	}()
	// Event loops sit in system calls most of the time; with a spare processor
	// the Go scheduler never makes one wait for its place. (What there is of
	// real CPUs does not change.)
	runtime.GOMAXPROCS(max(runtime.NumCPU(), maxThreads) + 2)
	res, err := run(ctx, s, out, func(p Progress) { out.writeJSON(frameProgress, p) })
	if err != nil {
		return err
	}
	return out.writeJSON(frameResult, res)
}

// ReadStream reads what [Serve] writes: blocks of operations (valid during the
// call only) and progress go to the callbacks, which may be nil. It returns the
// result, or an error if the stream holds one, is damaged, or ends early.
func ReadStream(r io.Reader, onBlock func([]byte) error, onProgress func(Progress)) (Result, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for {
		var head [5]byte
		if _, err := io.ReadFull(br, head[:]); err != nil {
			return Result{}, fmt.Errorf("httpload: the load process ended without a result: %w", err)
		}
		n := binary.LittleEndian.Uint32(head[1:])
		if n > maxFrame {
			return Result{}, fmt.Errorf("httpload: damaged stream: frame %q of %d bytes", head[0], n)
		}
		if uint32(cap(buf)) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if _, err := io.ReadFull(br, buf); err != nil {
			return Result{}, fmt.Errorf("httpload: the load process ended within a frame: %w", err)
		}
		switch head[0] {
		case frameBlock:
			if onBlock != nil {
				if err := onBlock(buf); err != nil {
					return Result{}, err
				}
			}
		case frameProgress:
			var p Progress
			if err := json.Unmarshal(buf, &p); err != nil {
				return Result{}, fmt.Errorf("httpload: damaged stream: progress: %w", err)
			}
			if onProgress != nil {
				onProgress(p)
			}
		case frameResult:
			var res Result
			if err := json.Unmarshal(buf, &res); err != nil {
				return Result{}, fmt.Errorf("httpload: damaged stream: result: %w", err)
			}
			return res, nil
		case frameError:
			return Result{}, errors.New(string(buf))
		default:
			return Result{}, fmt.Errorf("httpload: damaged stream: frame of kind %q", head[0])
		}
	}
}
