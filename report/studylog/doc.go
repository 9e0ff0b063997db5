// Package studylog reads the logs of bittorrent-benchmarks, the study
// of Codex against Deluge. docs/study-logs.md describes the format.
package studylog
