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

// List calls an API whose answer is a JSON object with a long list in one of its
// fields, and hands over the list's elements one after the other: each decodes
// one of them. Nothing else is kept, however long the list is. A list that is
// null or absent has no elements.
func (c *Client) List(ctx context.Context, u *url.URL, header http.Header, field string, each func(d *json.Decoder) error) error {
	resp, err := c.Open(ctx, Call{Method: http.MethodGet, URL: u, Header: header})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	begin, _ := body.Peek(80)
	begin = append([]byte{}, begin...) // the reader's buffer changes
	if html(begin) {
		return c.malformed(http.MethodGet, u, nil, begin)
	}
	d := json.NewDecoder(body)
	d.UseNumber()
	if err := elements(d, field, each); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return c.malformed(http.MethodGet, u, err, begin)
	}
	_, err = io.Copy(io.Discard, body) // read to its end, or the connection is not kept
	return err
}

func elements(d *json.Decoder, field string, each func(d *json.Decoder) error) error {
	switch open, err := d.Token(); {
	case err != nil:
		return err
	case open == nil:
		return nil // the word null
	case open != json.Delim('{'):
		return fmt.Errorf("%v where an object should begin", open)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key != field {
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return err
			}
			continue
		}
		switch open, err := d.Token(); {
		case err != nil:
			return err
		case open == nil:
			continue
		case open != json.Delim('['):
			return fmt.Errorf("%v where the list %q should begin", open, field)
		}
		for d.More() {
			if err := each(d); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
