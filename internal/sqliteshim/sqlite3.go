// Package sqlite3 replaces github.com/mattn/go-sqlite3, which needs C: walletd
// imports it for its driver and its version. The driver "sqlite3" is registered by
// who opens walletd's store, on SQLite in Go. See docs/decisions.md.
package sqlite3

// Version is that of the SQLite behind the driver: unknown here, so empty and 0.
func Version() (version string, number int, source string) { return "", 0, "" }
