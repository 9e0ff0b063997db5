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
	if err := elements(d, field, each); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return c.malformed(http.MethodGet, u, err, begin)
	}
	_, err = io.Copy(io.Discard, body) // a connection is only reused if the body is read to its end
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

// begins reads the opening delimiter of an object or list. It returns false for the word null.
func begins(d *json.Decoder, want json.Delim) (bool, error) {
	is, err := d.Token()
	if err == nil && is != nil && is != want {
		err = fmt.Errorf("%v where %v should be", is, want)
	}
	return is == want, err
}
