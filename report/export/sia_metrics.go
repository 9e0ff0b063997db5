package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// siaCalls are those that sia_metrics_collector made; its latency is their sum.
var siaCalls = []string{"/renter/contracts", "/renter/files", "/wallet"}

// siaColumns are the 17 columns of sia_metrics_collector (c89de1a, 2018) in
// their order: a count, or an amount of money in hastings. Its own names.
func siaColumns() []struct {
	name, reading string
	money         bool
} {
	return []struct {
		name, reading string
		money         bool
	}{
		{"contract_count", system.ReadContracts, false},
		{"file_count", system.ReadFiles, false},
		{"uploads_in_progress_count", system.ReadUploads, false},
		{"total_contract_size", system.ReadContractBytes, false},
		{"total_file_bytes", system.ReadFileBytes, false},
		{"uploaded_bytes", system.ReadAbsolute, false},
		{"total_contract_spending", system.ReadSpent, true},
		{"contract_fee_spending", system.ReadSpentPrefix + "fees", true},
		{"storage_spending", system.ReadSpentPrefix + "storage", true},
		{"upload_spending", system.ReadSpentPrefix + "upload", true},
		{"download_spending", system.ReadSpentPrefix + "download", true},
		{"remaining_renter_funds", system.ReadUnspent, true},
		{"wallet_siacoin_balance", system.ReadBalance, true},
		{"wallet_outgoing_siacoins", system.ReadOutgoing, true},
		{"wallet_incoming_siacoins", system.ReadIncoming, true},
	}
}

// SiaMetrics writes the polls of a siad as the collector of the published
// Sia load tests did, so that what was made for its files takes these: one line
// per poll; the time is the end of the poll in UTC, without a zone; amounts are
// in hastings; api_latency is in milliseconds. What a call that failed would
// have told is empty.
func SiaMetrics(run *record.Reader, w io.Writer) error {
	plan, err := analysis.ReadPlan(run)
	if err != nil {
		return err
	}
	siad := map[string]bool{}
	for _, cell := range plan.Cells {
		for _, use := range plan.Experiment.Systems {
			if use.Name == cell.System && use.Use == "siad" {
				siad[cell.ID] = true
			}
		}
	}
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	var polled []record.Trial
	for _, t := range trials {
		if siad[t.Cell] && !t.Warmup {
			for _, err := range run.Polls(t.ID) {
				if err != nil {
					return err
				}
				polled = append(polled, t)
				break
			}
		}
	}
	switch {
	case len(polled) == 0:
		return errors.New("sia-metrics: no siad was polled in this run: the format is made of the calls of its API; csv has the numbers of any run")
	case len(polled) > 1:
		return fmt.Errorf("sia-metrics: siad was polled in %d trials, and the format has no column for them; it is for runs of one", len(polled))
	}
	out := csv.NewWriter(w)
	head := []string{"timestamp"}
	for _, c := range siaColumns() {
		head = append(head, c.name)
	}
	if err := out.Write(append(head, "api_latency")); err != nil {
		return err
	}
	for p, err := range run.Polls(polled[0].ID) {
		if err != nil {
			return err
		}
		if err := out.Write(siaRow(polled[0].Epoch, p)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func siaRow(epoch time.Time, p record.Poll) []string {
	readings := map[string]record.Reading{}
	for _, r := range p.Readings {
		if r.Bad == "" {
			readings[r.Name] = r
		}
	}
	latency, asked, end := time.Duration(0), false, p.End
	for _, call := range p.Calls {
		for _, name := range siaCalls {
			if call.Name == name {
				latency += call.End - call.Start
				if !asked || call.End > end {
					end = call.End
				}
				asked = true
			}
		}
	}
	row := []string{epoch.Add(end).UTC().Format("2006-01-02T15:04:05.000000")}
	for _, c := range siaColumns() {
		r, told := readings[c.reading]
		switch {
		case !told:
			row = append(row, "")
		case c.money:
			row = append(row, r.Exact)
		default:
			row = append(row, strconv.FormatFloat(math.Round(r.Value), 'f', 0, 64))
		}
	}
	if !asked {
		return append(row, "")
	}
	return append(row, strconv.FormatFloat(float64(latency)/float64(time.Millisecond), 'f', 3, 64))
}
