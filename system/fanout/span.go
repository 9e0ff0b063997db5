package fanout

// span is a run of blocks that one source is asked for. Its end may come nearer
// while it is downloaded.
type span struct{ next, end int }

// least is how many blocks of another's span are worth a request.
const least = 4

// claim finds the next span for a download: a part of the longest run that
// nobody downloads, as large as leaves one for each download that seeks; or else
// the second half of the longest that is left of another's. It waits for one, and
// is nil when all is there or the downloads have ended.
func (c *content) claim() *span {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.seekers-- }()
	for {
		if c.missing == 0 || c.ctx.Err() != nil {
			return nil
		}
		s := c.free()
		if s == nil {
			s = c.half()
		}
		if s != nil {
			c.spans = append(c.spans, s)
			return s
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-c.ctx.Done():
		}
		c.mu.Lock()
	}
}

func (c *content) free() *span {
	taken := make([]bool, len(c.good))
	copy(taken, c.good)
	for _, s := range c.spans {
		for i := s.next; i < s.end; i++ {
			taken[i] = true
		}
	}
	best := span{}
	for i := 0; i < len(taken); i++ {
		run := span{next: i}
		for i < len(taken) && !taken[i] {
			i++
		}
		if run.end = i; run.end-run.next > best.end-best.next {
			best = run
		}
	}
	n := best.end - best.next
	if n == 0 {
		return nil
	}
	if c.turn == nil {
		n = (n + c.seekers - 1) / c.seekers
	}
	return &span{next: best.next, end: best.next + n}
}

func (c *content) half() *span {
	var longest *span
	for _, s := range c.spans {
		if longest == nil || s.end-s.next > longest.end-longest.next {
			longest = s
		}
	}
	if longest == nil || longest.end-longest.next < 2*least {
		return nil
	}
	s := &span{next: longest.next + (longest.end-longest.next+1)/2, end: longest.end}
	longest.end = s.next
	return s
}

// release gives a span back; again says that its download seeks the next one.
func (c *content) release(s *span, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.spans {
		if c.spans[i] == s {
			c.spans = append(c.spans[:i], c.spans[i+1:]...)
			break
		}
	}
	if again {
		c.seekers++
	}
	c.change()
}

// bounds are the first and the last byte of a span.
func (c *content) bounds(s *span) (first, last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, _ = c.task.Manifest.at(s.next)
	off, n := c.task.Manifest.at(s.end - 1)
	return first, off + n - 1
}

// block is the next of a span, if there is one.
func (c *content) block(s *span) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.next, s.next < s.end
}

// pass goes on to the next block of a span.
func (c *content) pass(s *span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.next++
}
