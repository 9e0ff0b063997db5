package httpload

import (
	"context"
	"errors"
)

func runNetHTTP(ctx context.Context, t *trial, res *Result) error {
	return errors.New("httpload: https not yet")
}
