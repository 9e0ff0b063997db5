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
func (c *Client) List(ctx context.Context, u *url.URL, header http.Header, field string,
	each func(d *json.Decoder) error) error {
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
	if there, err := begins(d, '{'); !there {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key != field {
			if err := d.Decode(new(json.RawMessage)); err != nil {
				return err
			}
			continue
		}
		there, err := begins(d, '[')
		for err == nil && there && d.More() {
			err = each(d)
		}
		if err == nil && there {
			_, err = d.Token()
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// begins reads how an object or a list begins; false: the word null is there instead.
func begins(d *json.Decoder, want json.Delim) (bool, error) {
	is, err := d.Token()
	if err == nil && is != nil && is != want {
		err = fmt.Errorf("%v where %v should be", is, want)
	}
	return is == want, err
}
