package testbed

import (
	"os"
	"slices"
	"strings"
)

// sysctl is one kernel setting of a namespace.
type sysctl struct{ key, value string }

// hostSysctls are set in every host's namespace, even to the kernel's default: results
// should not depend on how the machine was tuned. For TCP's buffers see [bufferSysctls].
var hostSysctls = []sysctl{
	{"net.ipv4.tcp_no_metrics_save", "1"},           // no trial inherits the last one's slow-start threshold
	{"net.ipv4.ip_local_port_range", "10000 65535"}, // fresh connections use up ports
	{"net.ipv4.tcp_tw_reuse", "1"},
	{"net.ipv4.tcp_max_syn_backlog", "8192"}, // a burst of a thousand connections at once
	{"net.core.somaxconn", "8192"},
	{"net.ipv4.conf.all.rp_filter", "0"}, // the machine's own may be strict
	{"net.ipv4.conf.default.rp_filter", "0"},
	{"net.ipv6.conf.all.accept_ra", "0"},
	{"net.ipv6.conf.default.accept_ra", "0"},
	{"net.ipv6.conf.default.router_solicitations", "0"},
}

// setSysctls runs on a host's thread. The record reads the settings back, and so shows what the kernel refused.
func setSysctls() error {
	for _, s := range slices.Concat(hostSysctls, bufferSysctls(receiveMaxMin, sendMaxMin)) { // Shape adjusts the buffers
		_ = writeSysctl(s.key, s.value)
	}
	return nil
}

// recordedSysctls are read in a host's namespace and recorded.
var recordedSysctls = strings.Fields(`
	net.ipv4.tcp_congestion_control net.ipv4.tcp_allowed_congestion_control
	net.ipv4.tcp_available_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem
	net.core.rmem_max net.core.wmem_max net.core.somaxconn net.core.default_qdisc
	net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_no_metrics_save net.ipv4.tcp_slow_start_after_idle
	net.ipv4.tcp_window_scaling net.ipv4.tcp_adv_win_scale net.ipv4.tcp_sack net.ipv4.tcp_timestamps
	net.ipv4.tcp_ecn net.ipv4.tcp_fastopen net.ipv4.tcp_mtu_probing net.ipv4.tcp_notsent_lowat
	net.ipv4.tcp_limit_output_bytes net.ipv4.tcp_tw_reuse net.ipv4.ip_local_port_range`)

func sysctlPath(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

func writeSysctl(key, value string) error {
	return os.WriteFile(sysctlPath(key), []byte(value), 0)
}

func readSysctl(key string) string { return readLine(sysctlPath(key)) }
