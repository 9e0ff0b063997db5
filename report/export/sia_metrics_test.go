package export

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// TestSiaMetrics: the columns, their order and conventions are those of the
// collector that the load-test reports were made with.
func TestSiaMetrics(t *testing.T) {
	dir, run, w := synthetic.Polled(t, "siad", time.Date(2018, 3, 1, 12, 0, 0, 0, time.FixedZone("CET", 3600)))
	for i := range 4 {
		must(t, w.Poll(synthetic.SiaPoll(i)))
	}
	must(t, run.Flush())
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	var b bytes.Buffer
	must(t, SiaMetrics(r, &b))
	golden := filepath.Join("testdata", "sia-metrics.csv")
	if *update {
		must(t, os.WriteFile(golden, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if b.String() != string(want) {
		t.Errorf("got\n%s, want\n%s", b.String(), want)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	must(t, err)
	if got := strings.Join(rows[0], " "); got != "timestamp contract_count file_count uploads_in_progress_count total_contract_size total_file_bytes uploaded_bytes total_contract_spending contract_fee_spending storage_spending upload_spending download_spending remaining_renter_funds wallet_siacoin_balance wallet_outgoing_siacoins wallet_incoming_siacoins api_latency" {
		t.Errorf("columns: %s", got)
	}
	if first := rows[1]; first[0] != "2018-03-01T11:00:00.400000" || first[16] != "400.000" || first[5] != "1048576" || first[13] != "123456"+strings.Repeat("0", 24) {
		t.Errorf("%v", first)
	}
	if gap := rows[3]; gap[2] != "" || gap[6] != "" || gap[1] != "50" || gap[16] != "350.000" {
		t.Errorf("%v", gap)
	}
	if absurd := rows[4]; absurd[13] != "" || absurd[14] == "" {
		t.Errorf("%v", absurd)
	}
}

// TestSiaMetricsOfOthers: there is no such file of another system, or of a run
// without polls.
func TestSiaMetricsOfOthers(t *testing.T) {
	dir, run, w := synthetic.Polled(t, "kubo", time.Now())
	must(t, w.Poll(synthetic.SiaPoll(0)))
	must(t, run.Flush())
	for _, dir := range []string{dir, shared(t)} {
		r, err := record.Open(dir)
		must(t, err)
		var b bytes.Buffer
		if err := SiaMetrics(r, &b); err == nil || !strings.Contains(err.Error(), "no siad was polled") || b.Len() > 0 {
			t.Errorf("%v, %d bytes", err, b.Len())
		}
		r.Close()
	}
}
