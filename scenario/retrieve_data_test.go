package scenario

import (
	"errors"
	"strings"
	"testing"
)

// A server that answers, and cannot serve ranges, is told what to write instead.
func TestRangesThatAServerDoesNotServe(t *testing.T) {
	err := retrieveObject{name: "own", size: 1 << 20, whole: "the server answers ranges with the whole"}.fits(1000)
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "retrieve.range to whole") || !strings.HasPrefix(err.Error(), "own: ranges cannot be fetched") {
		t.Errorf("%v", err)
	}
}
