package httpload

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// served runs Serve with a specification and reads its stream. Closing stdin
// is what the death of the parent looks like.
func served(t *testing.T, s Spec, closeAfter time.Duration) (Result, []record.Op, []Progress, error) {
	t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		inW.Write(spec)
		if closeAfter > 0 {
			time.Sleep(closeAfter)
			inW.Close()
		}
	}()
	t.Cleanup(func() { inW.Close() })
	go func() { Serve(context.Background(), inR, outW); outW.Close() }()
	var all []record.Op
	var progress []Progress
	res, err := ReadStream(outR, func(b []byte) error {
		var err error
		all, err = record.DecodeBlock(b, all)
		return err
	}, func(p Progress) { progress = append(progress, p) })
	return res, all, progress, err
}

func TestServe(t *testing.T) {
	c := content(10_000)
	s := serveContent(t, c)
	res, all, progress, err := served(t, Spec{Objects: []Object{{URL: s.URL, Size: c.Size, Content: c}}, Concurrency: 3, Range: 100, Duration: time.Second, Window: 50 * time.Millisecond, Epoch: time.Now()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcomes["ok"] == 0 || res.Ops != int64(len(all)) || res.CPU <= 0 || res.MaxRSS <= 0 || res.Threads == 0 {
		t.Errorf("%d operations, result %+v", len(all), res)
	}
	if len(progress) < 3 {
		t.Fatalf("%d progress reports", len(progress))
	}
	for i := 1; i < len(progress); i++ {
		if progress[i].At <= progress[i-1].At || progress[i].Ops < progress[i-1].Ops {
			t.Errorf("progress goes back: %+v, %+v", progress[i-1], progress[i])
		}
	}
	if progress[len(progress)-1].Ops == 0 {
		t.Error("no progress seen")
	}
}

func TestServeEndsWithItsParent(t *testing.T) {
	c := content(1_000_000)
	url := throttled(t, contentBytes(t, c), 1000, 10*time.Millisecond)
	began := time.Now()
	res, all, _, err := served(t, Spec{Objects: []Object{{URL: url, Size: c.Size, Content: c}}, Concurrency: 2, Duration: time.Minute}, 100*time.Millisecond)
	if err != nil || res.Outcomes["cancelled"] != 2 || len(all) != 2 {
		t.Errorf("%v, outcomes %v, %d operations", err, res.Outcomes, len(all))
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestServeErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "read the specification",
		"{":                 "read the specification",
		`{"concurency": 1}`: "concurency",
		`{}`:                "no objects",
	} {
		var out bytes.Buffer
		if err := Serve(t.Context(), strings.NewReader(in), &out); err == nil {
			t.Errorf("%q: no error", in)
		}
		if _, err := ReadStream(&out, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the stream says %v, want %q", in, err, want)
		}
	}
}

func TestReadDamagedStream(t *testing.T) {
	for name, in := range map[string]string{
		"empty": "", "cut": "\x20\x01", "not gob": "?\x00\x00\x00\x00",
	} {
		if _, err := ReadStream(strings.NewReader(in), nil, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
