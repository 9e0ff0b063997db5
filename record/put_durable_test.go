package record

import (
	"testing"
	"time"
)

// The bytes of an object that became durable are its put's: it has no length of
// its own. Operations that are ok and have one have moved so many bytes.
func TestBytesOfWhatBecameDurable(t *testing.T) {
	run, err := Create(t.TempDir()+"/run", []byte("{}"), nil, nil)
	must(t, err)
	defer run.Close()
	w, err := run.Begin("c001", 0, false, time.Now())
	must(t, err)
	if err := w.Ops([]Op{{Kind: OpPutDurable, Start: 1, Intended: 1, LastByte: 9}}); err != nil {
		t.Error(err)
	}
	for _, kind := range []OpKind{OpPut, OpPutDurable} {
		if err := w.Ops([]Op{{Kind: kind, Length: 7, Start: 1, Intended: 1, LastByte: 9}}); err == nil {
			t.Errorf("a %s of no byte of seven is taken for ok", kind)
		}
	}
}
