package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// List calls an API whose answer is a JSON object with a long list in one of its fields. It calls
// each for every element of the list, and each must decode that element. Nothing else is kept,
// however long the list is. A list that is null or absent has no elements.
func (c *Client) List(ctx context.Context, u *url.URL, header http.Header, field string,
	each func(d *json.Decoder) error) error {
	resp, err := c.Open(ctx, Call{Method: http.MethodGet, URL: u, Header: header})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	begin, _ := body.Peek(80)
	begin = append([]byte{}, begin...) // a copy, because the reader's buffer changes
	if html(begin) {
		return c.malformed(http.MethodGet, u, nil, begin)
	}
	d := json.NewDecoder(body)
	d.UseNumber()
	if err := members(d, '{', func() error {
		key, err := d.Token()
		switch {
		case err != nil:
			return err
		case key == field:
			return members(d, '[', func() error { return each(d) })
		}
		return d.Decode(new(json.RawMessage))
	}); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return c.malformed(http.MethodGet, u, err, begin)
	}
	_, err = io.Copy(io.Discard, body) // a connection is only reused if the body is read to its end
	return err
}

// members reads an object or list from its opening to its closing delimiter, and calls read for each
// of its members. The word null has none.
func members(d *json.Decoder, open json.Delim, read func() error) error {
	first, err := d.Token()
	if err != nil || first == nil {
		return err
	}
	if first != open {
		return fmt.Errorf("%v where %v should be", first, open)
	}
	for d.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
