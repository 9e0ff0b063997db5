package siasim

import "net/http"

// bucketMark begins the paths of objects that renterd has.
const bucketMark = "\x00"

type renterdState struct{}

func (r *renterdState) init(Config) {}

func (s *Sim) renterdRoutes() http.Handler { return http.NotFoundHandler() }
