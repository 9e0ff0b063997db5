//go:build !nowalletd

package siachain

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // registers SQLite in Go
)

// driverName is the driver that walletd opens its store with. It is the name of
// github.com/mattn/go-sqlite3, which needs C. See docs/decisions.md.
const driverName = "sqlite3"

// registerSQLite registers a driver with that name for walletd. It is only called in a node's
// process, before it opens a store.
func registerSQLite() error {
	if slices.Contains(sql.Drivers(), driverName) {
		return nil
	}
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return err
	}
	defer db.Close()
	sql.Register(driverName, pureGo{db.Driver()})
	return nil
}

// pureGo opens data source names in the form of go-sqlite3.
type pureGo struct{ driver.Driver }

// Open implements driver.Driver.
func (d pureGo) Open(name string) (driver.Conn, error) { return d.Driver.Open(translate(name)) }

// translate turns file:PATH?_journal_mode=WAL into file:PATH?_pragma=journal_mode(WAL). All
// parameters that walletd uses set pragmas.
func translate(name string) string {
	path, query, _ := strings.Cut(name, "?")
	var out []string
	for parameter := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(parameter, "=")
		out = append(out, fmt.Sprintf("_pragma=%s(%s)", strings.TrimPrefix(key, "_"), value))
	}
	slices.Sort(out) // busy_timeout comes first, before pragmas that may have to wait
	return path + "?" + strings.Join(out, "&")
}
