package listed

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	sum := strings.Repeat("Ab", 32)
	got, err := Parse(strings.NewReader("# pieces\n\nhttp://h/a#x 12 # twelve\n  http://h/b\thttp \n"), "l", "url")
	if err == nil || !strings.Contains(err.Error(), `l:4: size "http"`) {
		t.Errorf("error %v", err)
	}
	if want := []Entry{{"http://h/a#x", 12, ""}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	got, err = Parse(strings.NewReader("a - "+sum+"\nb 0 -\nc"), "l", "cid")
	if want := []Entry{{"a", -1, strings.ToLower(sum)}, {"b", 0, ""}, {"c", -1, ""}}; err != nil ||
		!cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseTellsAllErrors(t *testing.T) {
	_, err := Parse(strings.NewReader("a -1\nb 1 zz\nc 1 - x\nd\nd\n"), "l", "cid")
	want := `l:1: size "-1" is not a number of bytes (or - when it is not known)
l:2: sha256 "zz" is not 64 hexadecimal digits (or - when it is not known)
l:3: 4 columns; want CID [SIZE [SHA256]]
l:5: the same cid as on line 4`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if _, err := Parse(strings.NewReader("# none\n"), "l", "cid"); err == nil {
		t.Error("an empty list is no error")
	}
}
