package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Carried is what came to those who wanted content, for each of its bytes, in one
// cell.
type Carried struct {
	Name    string
	Link    Value // bytes on the links, headers included
	Payload Value // payload, by the system's own account
	Of      string
}

const (
	// muchCarried is what a link may carry for each byte: TCP/IP headers and
	// acknowledgements are some 6 % on frames of 1500 bytes, and TLS, framing and
	// what a protocol says beside the content as much again.
	muchCarried = 1.2
	// muchPayload is the same for payload, which has no headers.
	muchPayload = 1.1
	// mostNamed is how many cells are named one by one.
	mostNamed = 6
)

// SentTwice says where bytes crossed links in vain.
func SentTwice(all []Carried) []Finding {
	f := Finding{Rule: "sent-twice", Tone: Warn, Title: "The links carried more than the content",
		Text: fmt.Sprintf("More than %s of what was wanted crossed the links of those who wanted it, headers included, or more than %s as payload by the system's own account: pieces came more than once, or were fetched and thrown away. Systems ask twice near the end, so it is much of little content and little of much. The load line is that of the content alone: who seems to wait may have a full link.", words.Show(muchCarried, "×"), words.Show(muchPayload, "×")),
		Try:  "Move more content: what is sent twice at the end becomes a smaller share. Where it does not, ask fewer peers for the same piece at once, or wait longer before asking again."}
	for _, c := range all {
		var say []string
		if c.Link.above(muchCarried) {
			say = append(say, "on the link "+c.Link.words("×"))
		}
		if c.Payload.above(muchPayload) {
			say = append(say, "payload "+c.Payload.words("×"))
		}
		if say != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of the %s (n = %d)", c.Name, words.List(say), c.Of, max(c.Link.N, c.Payload.N)))
		}
	}
	if n := len(f.Evidence); n > mostNamed+1 {
		f.Evidence = append(f.Evidence[:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}
