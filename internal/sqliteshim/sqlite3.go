// Package sqlite3 replaces github.com/mattn/go-sqlite3, which needs C: walletd imports it for its
// driver and its version. The package that opens walletd's store registers the driver "sqlite3",
// with SQLite in Go. See docs/decisions.md.
package sqlite3

// Version returns the version of the driver's SQLite: unknown here, so empty and 0.
func Version() (version string, number int, source string) { return "", 0, "" }
