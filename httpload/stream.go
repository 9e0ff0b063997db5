package httpload

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
)

// frame is an element of the stream that a load process writes, encoded by gob: one of
// these. The stream ends with a result or an error.
type frame struct {
	Block    []byte // operations, as record.AppendBlock encodes them
	Progress *Progress
	Result   *Result
	Error    string
}

// frameWriter writes frames; it is an OpSink.
type frameWriter struct {
	mu    sync.Mutex
	w     *bufio.Writer
	gob   *gob.Encoder
	block []byte
}

func (f *frameWriter) write(one frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.gob.Encode(one); err != nil {
		return err
	}
	return f.w.Flush()
}

// Ops implements [record.OpSink].
func (f *frameWriter) Ops(ops []record.Op) error {
	f.block = record.AppendBlock(f.block[:0], ops)
	return f.write(frame{Block: f.block})
}

// Serve is `plimsoll node load`: it reads a Spec (JSON) from stdin, runs it,
// and writes frames for [ReadStream] to stdout. stdin stays open as long as the
// parent lives; when it ends, or ctx does, operations under way are recorded as
// cancelled and the result follows.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := bufio.NewWriterSize(stdout, 64<<10)
	out := &frameWriter{w: w, gob: gob.NewEncoder(w)}
	err := serve(ctx, cancel, stdin, out)
	if err != nil {
		// The parent learns it from the stream; what cannot be written there is
		// in our own exit code.
		err = errors.Join(err, out.write(frame{Error: err.Error()}))
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
	res, err := run(ctx, s, out, func(p Progress) { out.write(frame{Progress: &p}) })
	if err != nil {
		return err
	}
	return out.write(frame{Result: &res})
}

// ReadStream reads what [Serve] writes: blocks of operations (valid during the
// call only) and progress go to the callbacks, which may be nil. It returns the
// result, or an error if the stream holds one, is damaged, or ends early.
func ReadStream(r io.Reader, onBlock func([]byte) error, onProgress func(Progress)) (Result, error) {
	dec := gob.NewDecoder(r)
	for {
		var f frame
		if err := dec.Decode(&f); err != nil {
			return Result{}, fmt.Errorf("httpload: the load process ended without a result: %w", err)
		}
		switch {
		case f.Error != "":
			return Result{}, errors.New(f.Error)
		case f.Result != nil:
			return *f.Result, nil
		case f.Progress != nil && onProgress != nil:
			onProgress(*f.Progress)
		case f.Block != nil && onBlock != nil:
			if err := onBlock(f.Block); err != nil {
				return Result{}, err
			}
		}
	}
}
