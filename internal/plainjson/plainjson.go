// Package plainjson is JSON as people and other programs write it: <, > and &
// stand as they are, which encoding/json escapes for the sake of HTML.
package plainjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal with <, > and & as they are: one line, without its
// end. U+2028 and U+2029 stay escaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Quote is s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func Quote(s string) string {
	b, _ := Marshal(s) // a string always has a form
	return string(b)
}
