package s3

import (
	"errors"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/plimsoll-project/plimsoll/system"
)

// What a proxy answers in S3's place is told in a line, with its status.
func TestPageOfAProxyIsShort(t *testing.T) {
	text := "<html> <head><title># Internal Server Error</title></head><body>" + strings.Repeat("<p>sorry</p>", 500) +
		"</body></html>"
	for _, c := range []struct {
		err  minio.ErrorResponse
		want string
		is   error
	}{
		{minio.ErrorResponse{StatusCode: 500, Code: "500 Internal Server Error", Message: text},
			"status 500: a web page instead of an answer of S3", nil},
		{minio.ErrorResponse{StatusCode: 507, Message: "<!DOCTYPE html>\n<p>no"},
			"status 507: a web page instead of an answer of S3: quota or disk full", system.ErrQuota},
		{minio.ErrorResponse{StatusCode: 503, Code: "SlowDown", Message: "Please reduce your request rate."},
			"status 503: Please reduce your request rate.", nil},
	} {
		err := classified(c.err)
		if err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}
