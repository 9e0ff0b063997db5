package tahoe

import (
	"context"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// full matches a part of an UploadUnhappinessError. A storage node also counts as full for an
// object of which it has incomplete shares: those of an interrupted upload, which it drops 30
// minutes after their last byte.
var full = regexp.MustCompile(`of which (\d+) placed none due to the server being full`)

// noneFound ends a NoSharesError if no storage node had a share; otherwise the error names the
// failure of a share.
const noneFound = "Last failure: None"

// explain maps the error of an operation to the errors that callers distinguish, and adds which
// daemon has ended, if any.
//
// Tahoe-LAFS answers 410 both if it finds too few shares and if it finds none; the text contains
// the names of its exceptions.
func (n *node) explain(ctx context.Context, doing string, err error) error {
	var s *web.StatusError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("gave up waiting for the client's answer: %w", err)
	case !errors.As(err, &s): // no answer
	case strings.Contains(s.Text, "UploadUnhappinessError"):
		if m := full.FindStringSubmatch(s.Text); m != nil && m[1] != "0" {
			err = fmt.Errorf("%w, or an upload of the same bytes that was cut off still holds the place, for up to 30 "+
				"minutes: %s", system.ErrQuota, message(s))
		} else {
			err = fmt.Errorf("%s: %w", message(s), system.ErrTooFew)
		}
	// NoSharesError with a failure: shares exist, but none is valid, because they are damaged or
	// belong to another cap.
	case strings.Contains(s.Text, "NotEnoughSharesError"), strings.Contains(s.Text, "NotEnoughServersError"),
		strings.Contains(s.Text, "NoSharesError") && !strings.Contains(s.Text, noneFound):
		err = fmt.Errorf("%s: %w", message(s), system.ErrTooFew)
	case strings.Contains(s.Text, "NoSharesError"), strings.Contains(s.Text, "UnrecoverableFileError"):
		err = n.absent(ctx, errors.New(message(s)))
	}
	return member.Explain(n.alive, fmt.Errorf("tahoe: %s: %w", doing, err))
}

// absent adds to err that the object does not exist or, if storage nodes that may have it are not
// connected, that there are too few.
func (n *node) absent(ctx context.Context, err error) error {
	all, ask := n.servers(ctx)
	if ask != nil {
		return fmt.Errorf("%w; %w", err, ask)
	}
	have, _ := connected(all)
	if have < len(all) || have == 0 || n.alive != nil && n.alive.Err() != nil {
		return fmt.Errorf("%w (%d of %d storage nodes are connected): %w", err, have, len(all), system.ErrTooFew)
	}
	return fmt.Errorf("%w: %w", err, system.ErrNotFound)
}

// message returns the relevant part of an error: of a traceback, which may be HTML, the line with
// the exception.
func message(s *web.StatusError) string {
	said := ""
	for line := range strings.Lines(s.Text) {
		line = strings.TrimSpace(line)
		if exception.MatchString(line) || said == "" {
			said = line
		}
	}
	said = html.UnescapeString(markup.ReplaceAllString(said, ""))
	if len(said) > 600 {
		said = said[:600] + "…"
	}
	return fmt.Sprintf("status %d: %s", s.Status, said)
}

// Errors are text or an HTML page, whatever format was requested.
var markup = regexp.MustCompile(`<[a-z/][^<>]*>`)

var exception = regexp.MustCompile(`(Error|Exception)\b.*:`)
