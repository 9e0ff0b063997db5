// Package studylog reads and writes the logs of bittorrent-benchmarks, the study
// of Codex against Deluge, so that its published data can be analysed here and
// its notebook works on our runs. docs/study-logs.md describes the format.
package studylog
