package plainjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMarshal(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{"<a & b>\n", `"<a & b>\n"`},
		{"\u2028 é 😀", `"\u2028 é 😀"`},
		{"bad\xff", `"bad\ufffd"`},
		{map[string]any{"b": 1, "a": []any{nil, "\n"}}, `{"a":[null,"\n"],"b":1}`},
		{json.RawMessage(`{"x" : "<"}`), `{"x":"<"}`},
		{"ends in a newline\n", `"ends in a newline\n"`},
	} {
		b, err := Marshal(tt.v)
		if err != nil || string(b) != tt.want {
			t.Errorf("%q, %v; want %s", b, err, tt.want)
		}
		if s, ok := tt.v.(string); ok && Quote(s) != tt.want {
			t.Errorf("quoted: %s, want %s", Quote(s), tt.want)
		}
	}
	if b, err := Marshal(func() {}); err == nil || b != nil || !strings.Contains(err.Error(), "unsupported") {
		t.Errorf("%q, %v", b, err)
	}
}
