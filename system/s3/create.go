package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/plimsoll-project/plimsoll/system"
)

// refusesToOverwrite finds out whether the server refuses to overwrite a key when
// If-None-Match: * asks it to, by two puts of a key of our own, which it then
// removes. Servers older than that rule ignore it, or do not take the header. The
// key is the same in all sessions of a run: one that was killed in between leaves
// it, and the next removes it.
func (n *node) refusesToOverwrite(ctx context.Context, run string) (bool, error) {
	if run == "" {
		run = rand.Text()
	}
	key := n.at.prefix + "plimsoll-try-" + run
	put := func() (status int, err error) {
		opts := putOptions(1)
		opts.SetMatchETagExcept("*")
		_, err = n.s3.PutObject(ctx, n.at.bucket, key, strings.NewReader("x"), 1, opts)
		n.leave(n.s3)
		return minio.ToErrorResponse(err).StatusCode, err
	}
	switch status, err := put(); {
	case status == http.StatusNotImplemented, status == http.StatusBadRequest:
		return false, nil
	case err != nil && !taken(status): // else an earlier session's is there
		return false, fmt.Errorf("s3: put %s to try whether the server lets us: %w", key, classified(err))
	}
	status, err := put()
	if err := n.s3.RemoveObject(ctx, n.at.bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return false, fmt.Errorf("s3: delete %s, which was put to try the server: %w", key, classified(err))
	}
	if err != nil && !taken(status) {
		return false, fmt.Errorf("s3: put %s a second time: %w", key, classified(err))
	}
	return taken(status), nil
}

// taken is the status of a put that is not to overwrite, and of one that others
// make at the same moment.
func taken(status int) bool {
	return status == http.StatusPreconditionFailed || status == http.StatusConflict
}

// leave makes the next request dial, after a put that was refused: versitygw
// answers before it has read the body, and takes the rest for another request.
func (n *node) leave(c *minio.Client) {
	if c == n.local {
		n.near.Redial()
		return
	}
	n.Client.Redial()
}

// absent asks for a key before a put, for servers that would not refuse it.
func (n *node) absent(ctx context.Context, c *minio.Client, key string) error {
	_, err := c.StatObject(ctx, n.at.bucket, key, minio.StatObjectOptions{})
	if err == nil {
		return errTaken
	}
	if err = classified(err); errors.Is(err, system.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("ask whether it is there: %w", err)
}

var errTaken = fmt.Errorf("a key of that name is there, and not ours to overwrite: %w", system.ErrReadOnly)
