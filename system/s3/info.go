// Package s3 stores objects in an S3 server: one that runs already, or a
// versitygw of our own on plain files.
package s3

import "github.com/plimsoll-project/plimsoll/system"

const name = "s3"

// Info implements system.System.
func (System) Info() system.Info {
	return system.Info{
		Name:    name,
		Summary: "S3: any endpoint, or versitygw (plain files) started here",
		Modes:   []system.Mode{system.Start, system.Attach},
		Kept:    "data", // versitygw gets another secret and another port
		Can:     []string{"http", "put", "range", "stat", "delete", "list", "update", "fresh", "stats", "https"},
		Image: "versity/versitygw:v1.8.0@sha256:" +
			"30292fc2eeacc67a36993b01f7a7a5e3361a19cced0e80c1d71cfa2a4b0a2499",
		Install: "plimsoll systems install s3, or go install github.com/versity/versitygw/cmd/versitygw@v1.8.0, or " +
			"name the program in option `binary` or PLIMSOLL_VERSITYGW",
		Options: []system.Option{
			{Name: "endpoint", Type: "string", Help: "attach: URL of the server, such as https://s3.example.org; " +
				"empty when started"},
			{Name: "bucket", Type: "string", Default: "plimsoll", Help: "bucket; must exist when attached"},
			{Name: "prefix", Type: "string", Help: "attach: prefix of the keys that are read and written"},
			{Name: "region", Type: "string", Default: "us-east-1", Help: "region that requests are signed for"},
			{Name: "access_key", Type: "string", Secret: true, Default: "AWS_ACCESS_KEY_ID",
				Help: "attach: environment variable with the access key; unset: anonymous"},
			{Name: "secret_key", Type: "string", Secret: true, Default: "AWS_SECRET_ACCESS_KEY",
				Help: "attach: environment variable with the secret key"},
			{Name: "tls", Type: "bool", Default: "false", Help: "start: serve HTTPS with a certificate made for the " +
				"run"},
			{Name: "ca", Type: "string", Help: "attach: PEM file of a root certificate"},
			{Name: "insecure", Type: "bool", Default: "false", Help: "attach: do not check the certificate"},
			{Name: "port", Type: "int", Default: "0", Help: "start: TCP port; 0: a free one"},
			system.ImageOption(),
			{Name: "binary", Type: "string", Help: "start: path of versitygw; empty: PLIMSOLL_VERSITYGW, then PATH"},
		},
	}
}
