package sia

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
)

// Endpoint is the API that options `url` and `password` name: its address, and
// the content of the environment variable.
func Endpoint(name string, opt system.Options) (base *url.URL, password string, err error) {
	base, err = url.Parse(opt["url"])
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" ||
		base.User != nil || strings.Trim(base.Path, "/") == "api" {
		return nil, "", fmt.Errorf("%s: option \"url\": %q is not the URL of a renter, such as http://127.0.0.1:9980",
			name, opt["url"])
	}
	password, set := os.LookupEnv(opt["password"])
	if !set {
		return nil, "", fmt.Errorf("%s: option \"password\": the environment variable %s is not set", name,
			opt["password"])
	}
	return base, password, nil
}

// Pair reads two options of which both or none are given, each at least 1;
// 0, 0: none is.
func Pair(name string, opt system.Options, first, second string) (a, b int64, err error) {
	a, err1 := opt.Int(first)
	b, err2 := opt.Int(second)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	if (a == 0) != (b == 0) || a < 0 || b < 0 {
		return 0, 0, fmt.Errorf("%s: options `%s` and `%s` are %d and %d: give both, each at least 1, or none", name,
			first, second, a, b)
	}
	return a, b, nil
}
