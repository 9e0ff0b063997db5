package export

import (
	"bytes"
	"encoding/csv"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/record"
)

func TestMarksAreExported(t *testing.T) {
	run, err := record.Create(filepath.Join(t.TempDir(), "run"), []byte(`{}`), nil, nil)
	must(t, err)
	defer run.Close()
	w, err := run.Begin("c001", 0, false, time.Unix(1, 0))
	must(t, err)
	must(t, w.Marks([]record.Mark{
		{Node: 3, Before: -1, Start: 2, End: 5, Verified: 7, Written: 0, Received: 9, Sent: 10, Peers: 11,
			Complete: true},
		{Node: 0, Start: 1, End: 1, Written: -1, Received: -1, Sent: -1, Peers: -1, Trouble: "disk full, \"really\""},
	}))
	must(t, w.End(record.Trial{}))

	var text bytes.Buffer
	must(t, Tables()["marks-csv"](run.Reader, &text))
	rows, err := csv.NewReader(&text).ReadAll()
	must(t, err)
	want := [][]string{
		{"trial", "node", "before_ns", "start_ns", "end_ns", "verified", "written", "received", "sent", "peers",
			"complete", "trouble"},
		{"1", "3", "-1", "2", "5", "7", "0", "9", "10", "11", "true", ""},
		{"1", "0", "0", "1", "1", "0", "", "", "", "", "false", "disk full, \"really\""},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got %q\nwant %q", rows, want)
	}

	var binary bytes.Buffer
	must(t, Tables()["marks-parquet"](run.Reader, &binary))
	got, err := parquet.Read[MarkRow](bytes.NewReader(binary.Bytes()), int64(binary.Len()))
	must(t, err)
	if len(got) != 2 || got[0].Before != -1 || *got[0].Peers != 11 || *got[0].Written != 0 || got[1].Written != nil ||
		got[1].Trouble != "disk full, \"really\"" {
		t.Errorf("got %+v", got)
	}
}
