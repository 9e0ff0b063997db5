package record

import (
	"testing"
	"time"
)

// The bytes of an object that became durable are its put's; other operations
// that are ok have moved what they were asked for.
func TestBytesOfWhatBecameDurable(t *testing.T) {
	run, err := Create(t.TempDir()+"/run", []byte("{}"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	w, err := run.Begin("c001", 0, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Ops([]Op{{Kind: OpPutDurable, Length: 7, Start: 1, Intended: 1, LastByte: 9}}); err != nil {
		t.Error(err)
	}
	if err := w.Ops([]Op{{Kind: OpPut, Length: 7, Start: 1, Intended: 1, LastByte: 9}}); err == nil {
		t.Error("a put of no byte of seven is taken for ok")
	}
}
