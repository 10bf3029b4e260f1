package distill

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"agentgraph/record"
)

// decoded is parseHead by way of encoding/json.
func decoded(b []byte) (h head, ok bool) {
	var r struct {
		Version string           `json:"schema_version"`
		Outputs []record.FileRef `json:"outputs"`
		Outcome *struct {
			Status record.Status `json:"status"`
		} `json:"outcome"`
		Request *struct {
			Constraint *Schema `json:"constraint"`
		} `json:"request"`
	}
	if json.Unmarshal(b, &r) != nil || r.Version != record.SchemaVersion {
		return h, false
	}
	h.Outputs = r.Outputs
	if r.Outcome != nil {
		h.Status = r.Outcome.Status
	}
	if r.Request != nil {
		h.Schema = r.Request.Constraint
	}
	return h, true
}

const headRecord = `{
  "schema_version": "agentgraph.turn/1", "turn_id": "a\"b\\", "outcome": {"output": "} \" ] \\", "status": "completed", "usage": {"n": [1, -2.5e3, null]}},
  "request": {"messages": [{"content": "{\"constraint\": 1}"}], "constraint": {"kind": "json", "file": ".schema-é.json", "source": ["a", {"sha256": "x"}], "sha256": "y"}, "prompt": null},
  "outputs": [{"path": "agents/a/output/x\"\u00e9.json", "sha256": "z", "bytes": 12}], "error": null, "empty": {}, "list": [ ] }
`

func FuzzHead(f *testing.F) {
	for _, s := range []string{headRecord, "", "{}", "{", `{"a"`, `{"a":`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `[1]`, `{"a":"\`, `{"a":1}}`, `{"a":]}`,
		`{"schema_version":"agentgraph.turn/1"}`, `{"schema_version":"agentgraph.turn/1","request":null,"outcome":null,"outputs":[]}`,
		`{"schema_version":"agentgraph.turn/1","request":{"constraint":null}}`, `{"schema_version":"agentgraph.turn/1","request":7}`,
		`{"schema_version":"agentgraph.turn/1","outputs":{}}`, `{"schema_version":"agentgraph.turn/1","outcome":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseHead(b) // must not panic, whatever it is
		if plain := plainKeys(b); !plain {
			return
		}
		want, ok := decoded(b)
		if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v, want %+v, %v", b, got, err, want, ok)
		}
	})
}

// plainKeys says that b is JSON whose keys are all written once, in small
// letters and without escapes, as those of a record are. encoding/json takes
// others too.
func plainKeys(b []byte) bool {
	if !json.Valid(b) || !utf8.Valid(b) {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var seen []map[string]bool // of the objects that are open; nil is a list
	key := false
	for {
		before := d.InputOffset()
		tok, err := d.Token()
		if err != nil {
			return true
		}
		switch tok := tok.(type) {
		case json.Delim:
			switch tok {
			case '{':
				seen, key = append(seen, map[string]bool{}), true
			case '[':
				seen, key = append(seen, nil), false
			default:
				seen = seen[:len(seen)-1]
				key = len(seen) > 0 && seen[len(seen)-1] != nil
			}
		case string:
			if key {
				top := seen[len(seen)-1]
				if top[tok] || tok != strings.ToLower(tok) || bytes.ContainsAny(b[before:d.InputOffset()], "\\\u017f\u212a") {
					return false
				}
				top[tok], key = true, false
				continue
			}
			key = len(seen) > 0 && seen[len(seen)-1] != nil
		default:
			key = len(seen) > 0 && seen[len(seen)-1] != nil
		}
	}
}

// Cut anywhere, a record is torn.
func TestHeadTorn(t *testing.T) {
	whole := headRecord[:len(headRecord)-1]
	want, ok := decoded([]byte(whole))
	if got, err := parseHead([]byte(whole)); err != nil || !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for i := range len(whole) {
		if _, err := parseHead([]byte(whole[:i])); err == nil {
			t.Errorf("cut after %d bytes it is whole", i)
		}
	}
	for _, s := range []string{
		`{"schema_version":"agentgraph.turn/1"}x`, `{"schema_version":"agentgraph.turn/1"}}`, `{"schema_version":"agentgraph.turn/1","a":}`,
		`{"schema_version":"agentgraph.turn/1","a":1,}`, `{"schema_version":"agentgraph.turn/1" "a":1}`, `{"schema_version":"agentgraph.turn/1","request":7}`,
		`{"schema_version":"agentgraph.turn/1","outputs":{}}`, `{"schema_version":"agentgraph.turn/2"}`, `{}`, `[]`, ``, `null`,
	} {
		if _, err := parseHead([]byte(s)); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
