// Package sqlite3 stands in for github.com/mattn/go-sqlite3, which needs C: walletd
// imports it for its driver and its version. The driver "sqlite3" is registered by
// who opens walletd's store, on SQLite in Go. See docs/adr/012-walletd-without-c.md.
package sqlite3

// Version is of the SQLite behind the driver: not told here, 0 and empty.
func Version() (version string, number int, source string) { return "", 0, "" }
