package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A panel of the Grafana dashboard.
type panel struct {
	title string
	help  string
	unit  string // Grafana's name of it
	shows []shown
}

// shown is one line of a panel.
type shown struct {
	expr   string // PromQL, whose metrics have no selector: query puts it in
	legend string
}

// one shows a metric as it is.
func one(metric, legend string) shown { return shown{metric, legend} }

// rate is how fast a metric that is no counter changes: by least squares over
// an hour, so that polls a minute or ten apart are told alike.
func rate(metric, legend string) shown { return shown{"deriv(" + metric + "[1h])", legend} }

// grew is how much a counter grew in the hour before.
func grew(metric, legend string) shown { return shown{"increase(" + metric + "[1h])", legend} }

// panels are the graphs of the published load test, and what tells whether the
// collection itself is well.
func panels() []panel {
	const coins = "none"
	return []panel{
		{"Files", "What the client knows, what is under way, and what has lost redundancy.", "short", []shown{
			one("plimsoll_files", "files"), one("plimsoll_uploads_in_progress", "in progress"), one("plimsoll_files_below_redundancy", "below redundancy")}},
		{"Data stored", "File bytes are those of the files; absolute bytes have padding and redundancy in them.", "bytes", []shown{
			one("plimsoll_file_bytes", "file bytes"), one("plimsoll_absolute_bytes", "absolute bytes"), one("plimsoll_contracts_size_bytes", "in contracts"), one("plimsoll_disk_bytes", "disk of the servers")}},
		{"Storage efficiency", "File bytes divided by absolute bytes.", "percentunit", []shown{
			{"plimsoll_file_bytes / plimsoll_absolute_bytes", "efficiency"}}},
		{"Bandwidth", "How fast stored bytes grow, over an hour.", "Bps", []shown{
			rate("plimsoll_file_bytes", "file bytes"), rate("plimsoll_absolute_bytes", "absolute bytes")}},
		{"Redundancy", "Of the files that are whole.", "short", []shown{
			one("plimsoll_redundancy_mean_ratio", "mean"), one("plimsoll_redundancy_min_ratio", "lowest"), one("plimsoll_redundancy_max_ratio", "highest")}},
		{"Funds", "In the system's currency.", coins, []shown{
			one("plimsoll_wallet_balance_coins", "wallet"), one("plimsoll_wallet_incoming_coins", "on its way in"), one("plimsoll_wallet_outgoing_coins", "on its way out"),
			one("plimsoll_contracts_cost_coins", "cost of contracts"), one("plimsoll_contracts_unspent_coins", "unspent in contracts"), one("plimsoll_contracts_ended_coins", "used by contracts that are over"),
			{"plimsoll_wallet_balance_coins + plimsoll_wallet_incoming_coins - plimsoll_wallet_outgoing_coins + plimsoll_contracts_cost_coins + (plimsoll_contracts_ended_coins or 0 * plimsoll_contracts_cost_coins)", "wallet and contracts: constant unless money is lost"}}},
		{"Spending", "By purpose, in the system's currency.", coins, []shown{one("plimsoll_spent_coins", "{{purpose}}")}},
		{"Prices", "Storage per TB and month, transfers per TB, in the system's currency.", coins, []shown{one("plimsoll_price_coins", "{{of}}")}},
		{"API latency", "Of each call of the latest poll, and their sum.", "s", []shown{
			one(callSeconds, "{{call}}"), {"sum by (system) (" + callSeconds + ")", "all calls"}}},
		{"Gaps", "Calls that failed, polls left out and readings that could not be true, in the hour before.", "short", []shown{
			grew(callErrorsTotal, "{{call}}: {{reason}}"), grew(missedTotal, "missed polls"), grew(badTotal, "absurd: {{reading}}")}},
		{"Polls", "Polls and calls in the hour before, and the age of the latest poll in seconds.", "short", []shown{
			grew(pollsTotal, "polls"), grew(callsTotal, "{{call}}"), {"time() - " + lastPoll, "age of the latest poll"}}},
		{"Network", "Servers, contracts and peers.", "short", []shown{
			one("plimsoll_contracts", "contracts"), one("plimsoll_contracts_good", "contracts that take more"), one("plimsoll_hosts", "hosts"), one("plimsoll_peers", "peers")}},
		{"State", "1 when in sync, 1 when the wallet is unlocked.", "short", []shown{
			one("plimsoll_synced", "in sync"), one("plimsoll_wallet_unlocked", "wallet unlocked")}},
		{"Chain", "Its height.", "short", []shown{one("plimsoll_chain_height_blocks", "height")}},
		{"Directory entries and inodes", "Of the storage servers.", "short", []shown{
			one("plimsoll_disk_entries", "entries"), one("plimsoll_disk_inodes", "inodes")}},
		{"Other readings", "Those with names of the system's own.", "short", []shown{one(otherReading, "{{name}}")}},
	}
}

const selector = `{system="$system"}`

// query puts the selector behind each metric of an expression.
func query(expr string) string {
	var out strings.Builder
	for len(expr) > 0 {
		i := strings.Index(expr, "plimsoll_")
		if i < 0 {
			break
		}
		end := i + strings.IndexFunc(expr[i:]+" ", func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
		out.WriteString(expr[:end] + selector)
		expr = expr[end:]
	}
	return out.String() + expr
}

// WriteDashboard writes a Grafana dashboard of the metrics that polls yield. It
// asks for its Prometheus data source when it is imported.
func WriteDashboard(w io.Writer) error {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	var graphs []object
	for i, p := range panels() {
		var targets []object
		for k, s := range p.shows {
			targets = append(targets, object{"refId": string(rune('A' + k)), "expr": query(s.expr), "legendFormat": s.legend, "datasource": source})
		}
		graphs = append(graphs, object{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.help, "datasource": source, "targets": targets,
			"gridPos":     object{"x": i % 2 * 12, "y": i / 2 * 8, "w": 12, "h": 8},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0, "custom": object{"spanNulls": false, "showPoints": "auto"}}, "overrides": []object{}},
			"options":     object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi"}},
		})
	}
	board := object{
		"title": "Plimsoll", "uid": "plimsoll-collect", "description": "What plimsoll collect and plimsoll serve tell Prometheus of a storage system.",
		"schemaVersion": 39, "version": 1, "editable": true, "timezone": "browser", "refresh": "1m", "tags": []string{"plimsoll", "storage"},
		"time": object{"from": "now-24h", "to": "now"},
		"templating": object{"list": []object{
			{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
			{"name": "system", "label": "System", "type": "query", "datasource": source, "refresh": 2,
				"definition": fmt.Sprintf("label_values(%s, system)", pollsTotal),
				"query":      object{"query": fmt.Sprintf("label_values(%s, system)", pollsTotal), "refId": "system"}},
		}},
		"annotations": object{"list": []object{}},
		"panels":      graphs,
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(board)
}
