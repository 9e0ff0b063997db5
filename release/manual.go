package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// manual returns the man page plimsoll.1, with the help texts of the program and of each command.
func manual(ctx context.Context, binary, version string, when time.Time) entry {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH PLIMSOLL 1 %q %q\n.SH NAME\nplimsoll \\- measures decentralized storage\n.SH SYNOPSIS\n",
		when.Format(time.DateOnly), "plimsoll "+version)
	fmt.Fprintf(&b, ".B plimsoll\nCOMMAND [ARGUMENT]...\n.SH DESCRIPTION\n%s.SH COMMANDS\n",
		verbatim(output(ctx, nil, binary, "--help")))
	for line := range strings.Lines(output(ctx, nil, binary, "__complete", "")) {
		name, _, is := strings.Cut(strings.TrimSpace(line), "\t")
		if !is || name == "help" || name == "completion" {
			continue
		}
		fmt.Fprintf(&b, ".SS %s\n%s", name, verbatim(output(ctx, nil, binary, name, "--help")))
	}
	return entry{name: "man/plimsoll.1", data: []byte(b.String())}
}

// verbatim returns text in a form that troff prints unchanged.
func verbatim(text string) string {
	var b strings.Builder
	b.WriteString(".in 0\n.nf\n")
	for line := range strings.Lines(text) {
		b.WriteString(`\&` + strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimRight(line, "\n")) + "\n")
	}
	return b.String() + ".fi\n.in\n"
}
