package report

import (
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// A gauge is a metric for Prometheus made of what a poll read. /metrics, its
// documentation and the dashboard all come from the list of them.
type gauge struct {
	reading string // or a prefix, when label is not empty
	metric  string // with its unit, by Prometheus' conventions
	label   string // what follows the prefix
	help    string
}

// gauges are those of the readings that mean the same for every system.
// Everything else goes to otherReading.
func gauges() []gauge {
	return []gauge{
		{system.ReadSynced, "plimsoll_synced", "", "1 when the system is in sync with its chain or its peers."},
		{system.ReadUnlocked, "plimsoll_wallet_unlocked", "", "1 when the wallet is unlocked."},
		{system.ReadHeight, "plimsoll_chain_height_blocks", "", "Height of the chain."},
		{system.ReadPeers, "plimsoll_peers", "", "Peers that are connected."},
		{system.ReadHosts, "plimsoll_hosts", "", "Servers that take data."},
		{system.ReadContracts, "plimsoll_contracts", "", "Contracts with servers that are not over."},
		{system.ReadGoodContracts, "plimsoll_contracts_good", "",
			"Of them, contracts with servers that take more data."},
		{system.ReadContractBytes, "plimsoll_contracts_size_bytes", "", "Sizes of the contracts, summed."},
		{system.ReadFiles, "plimsoll_files", "", "Files that the client knows, wholly or partly stored."},
		{system.ReadUploads, "plimsoll_uploads_in_progress", "", "Files that are not yet at their full redundancy."},
		{system.ReadFileBytes, "plimsoll_file_bytes", "",
			"Sizes of the files, each times the share of it that is stored."},
		{system.ReadAbsolute, "plimsoll_absolute_bytes", "",
			"Bytes sent to or kept by storage servers, padding and redundancy included."},
		{system.ReadRedundancyMean, "plimsoll_redundancy_mean_ratio", "",
			"Mean redundancy of the files that are whole."},
		{system.ReadRedundancyMin, "plimsoll_redundancy_min_ratio", "", "Lowest redundancy of a file that is whole."},
		{system.ReadRedundancyMax, "plimsoll_redundancy_max_ratio", "", "Highest redundancy of a file that is whole."},
		{system.ReadBelow, "plimsoll_files_below_redundancy", "",
			"Files that were at their full redundancy and no longer are."},
		{system.ReadDisk, "plimsoll_disk_bytes", "", "Disk blocks of the storage servers."},
		{system.ReadEntries, "plimsoll_disk_entries", "", "Directory entries of the storage servers."},
		{system.ReadInodes, "plimsoll_disk_inodes", "", "Inodes of the storage servers."},
		{system.ReadBalance, "plimsoll_wallet_balance_coins", "", "Money that can be spent, in the system's currency."},
		{system.ReadOutgoing, "plimsoll_wallet_outgoing_coins", "",
			"Money on its way out, not confirmed, in the system's currency."},
		{system.ReadIncoming, "plimsoll_wallet_incoming_coins", "", "Money on its way in, in the system's currency."},
		{system.ReadUnspent, "plimsoll_contracts_unspent_coins", "",
			"Money in contracts that is not spent, in the system's currency."},
		{system.ReadSpent, "plimsoll_contracts_cost_coins", "", "All that the contracts cost, unspent money " +
			"included, in the system's currency. It falls when contracts end."},
		{system.ReadEnded, "plimsoll_contracts_ended_coins", "",
			"What contracts that are over had used, in the system's currency; it is not in the cost of contracts."},
		{system.ReadSpentPrefix, "plimsoll_spent_coins", "purpose",
			"Money spent, by purpose, in the system's currency."},
		{system.ReadPricePrefix, "plimsoll_price_coins", "of",
			"Prices in the system's currency: storage per TB and month, upload and download per TB."},
	}
}

// gaugeOf is the gauge of a reading, and what its label says.
func (c *collector) gaugeOf(reading string) (metric string, labels []string) {
	for _, g := range c.readings {
		rest, has := strings.CutPrefix(reading, g.reading)
		switch {
		case g.label != "" && has:
			return g.metric, []string{rest}
		case g.label == "" && g.reading == reading:
			return g.metric, nil
		}
	}
	return otherReading, []string{reading}
}
