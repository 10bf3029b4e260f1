package distill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"agentgraph/record"
)

// A walk looks at every record and needs little of each, so records are not
// decoded for it: members that are not needed are stepped over. What is
// stepped over is only known to be balanced; Answer.Record decodes it all.

var errTorn = errors.New("is torn or no record")

// head is the part of a record that the index needs.
type head struct {
	Outputs []record.FileRef
	Status  record.Status // empty: refused before admission
	Schema  *Schema       // nil: free text
}

// parseHead reads the head of a record.
func parseHead(b []byte) (head, error) {
	var h head
	version := ""
	err := members(b, func(key string, value []byte) error {
		switch key {
		case "schema_version":
			return json.Unmarshal(value, &version)
		case "outputs":
			return json.Unmarshal(value, &h.Outputs)
		case "outcome":
			return inside(value, map[string]any{"status": &h.Status})
		case "request":
			return constraintOf(value, &h)
		}
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("%w: %v", errTorn, err)
	}
	if version != record.SchemaVersion {
		return h, fmt.Errorf("is none: schema_version is %q, not %q", version, record.SchemaVersion)
	}
	return h, nil
}

func constraintOf(request []byte, h *head) error {
	if request[0] != '{' {
		return null(request)
	}
	return members(request, func(key string, value []byte) error {
		if key != "constraint" || value[0] != '{' {
			return nil
		}
		h.Schema = &Schema{}
		return inside(value, map[string]any{"kind": &h.Schema.Kind, "file": &h.Schema.File, "sha256": &h.Schema.SHA256})
	})
}

// inside decodes some members of an object, which may be null.
func inside(object []byte, want map[string]any) error {
	if object[0] != '{' {
		return null(object)
	}
	return members(object, func(key string, value []byte) error {
		if to := want[key]; to != nil {
			return json.Unmarshal(value, to)
		}
		return nil
	})
}

func null(value []byte) error {
	if string(value) == "null" {
		return nil
	}
	return errors.New("something else where an object is due")
}

var errEnd = errors.New("it ends too early")

// members calls do for each member of a JSON object; value is its text, never
// empty.
func members(b []byte, do func(key string, value []byte) error) error {
	i := space(b, 0)
	if i == len(b) || b[i] != '{' {
		return errors.New("it is no JSON object")
	}
	i = space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return rest(b, i+1)
	}
	for {
		start := i
		if i >= len(b) || b[i] != '"' {
			return errEnd
		}
		end, err := value(b, i)
		if err != nil {
			return err
		}
		key := b[start+1 : end-1]
		i = space(b, end)
		if i >= len(b) || b[i] != ':' {
			return errEnd
		}
		i = space(b, i+1)
		end, err = value(b, i)
		if err != nil {
			return err
		}
		// Keys of a record have no escapes; one that has is none of them.
		if err := do(string(key), b[i:end]); err != nil {
			return err
		}
		i = space(b, end)
		switch {
		case i >= len(b):
			return errEnd
		case b[i] == '}':
			return rest(b, i+1)
		case b[i] != ',':
			return errors.New("something between two members")
		}
		i = space(b, i+1)
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// rest says that nothing follows a value.
func rest(b []byte, i int) error {
	if space(b, i) < len(b) {
		return errors.New("something follows the object")
	}
	return nil
}

var delimiter = func() (t [256]bool) {
	for _, c := range []byte("\",:{}[] \n\t\r") {
		t[c] = true
	}
	return t
}()

// value is the end of the JSON value that begins at i.
func value(b []byte, i int) (int, error) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end := str(b, i)
			if end < 0 {
				return 0, errEnd
			}
			i = end
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return 0, errors.New("a value is missing")
			}
			i++
			continue
		default: // a number or a word
			for i < len(b) && !delimiter[b[i]] {
				i++
			}
		}
		if depth < 0 {
			return 0, errors.New("a bracket too many")
		}
		if depth == 0 {
			return i, nil
		}
	}
	return 0, errEnd
}

// str is the end of the JSON string that begins at i, or -1.
func str(b []byte, i int) int {
	for at := i + 1; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		back := 0
		for b[at-1-back] == '\\' {
			back++
		}
		at++
		if back%2 == 0 {
			return at
		}
	}
}
