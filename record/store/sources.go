package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentgraph/internal/plainjson"
	"agentgraph/record"
)

// sharedBytes is the size above which a text that repeats is stored once.
const sharedBytes = 1024

// Pieces is a text of a stored record: a JSON string, or an array whose
// pieces, put together, are the text. A piece is a string or an object
// {"sha256", "bytes"} that stands for the text of turns/sources/<sha256>.
//
// Such texts are request.prompt, request.constraint.source and the content of
// each of request.messages; nothing else in a record is ever in pieces.
type Pieces []piece

type piece struct {
	text   string
	sha256 string // a reference when set
	bytes  int
}

type reference struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// MarshalJSON writes a plain text as a string.
func (p Pieces) MarshalJSON() ([]byte, error) {
	if len(p) == 1 && p[0].sha256 == "" {
		return plainjson.Marshal(p[0].text)
	}
	parts := make([]any, len(p))
	for i, x := range p {
		if x.sha256 != "" {
			parts[i] = reference{x.sha256, x.bytes}
		} else {
			parts[i] = x.text
		}
	}
	return plainjson.Marshal(parts)
}

// UnmarshalJSON reads either form.
func (p *Pieces) UnmarshalJSON(b []byte) error {
	var whole string
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &whole); err != nil {
			return err
		}
		*p = Pieces{{text: whole}}
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	*p = nil
	for _, raw := range parts {
		var x piece
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &x.text); err != nil {
				return err
			}
		} else {
			var ref reference
			if err := json.Unmarshal(raw, &ref); err != nil {
				return err
			}
			if !isSHA256(ref.SHA256) {
				return fmt.Errorf("%q is not a sha256", ref.SHA256)
			}
			x.sha256, x.bytes = ref.SHA256, ref.Bytes
		}
		*p = append(*p, x)
	}
	return nil
}

func isSHA256(s string) bool {
	if len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// The stored form of a record: the same members, with texts in pieces.
type (
	storedRecord struct {
		record.Record
		Request *storedRequest `json:"request"`
	}
	storedRequest struct {
		record.Request
		Messages   []storedMessage   `json:"messages"`
		Prompt     *Pieces           `json:"prompt"`
		Constraint *storedConstraint `json:"constraint"`
	}
	storedMessage struct {
		record.Message
		Content Pieces `json:"content"`
	}
	storedConstraint struct {
		record.Constraint
		Source Pieces `json:"source"`
	}
)

// split takes the texts that repeat out of r: every message but the last
// (which is this turn's own input) and the schema, when they are long, also
// where the rendered prompt repeats them.
func split(r *record.Record) (*storedRecord, map[string]string) {
	out := &storedRecord{Record: *r}
	if r.Request == nil {
		return out, nil
	}
	req := &storedRequest{Request: *r.Request}
	out.Request = req
	sources := map[string]string{}
	var shared []piece // with their texts, in the order of the prompt
	share := func(text string) Pieces {
		if len(text) <= sharedBytes {
			return Pieces{{text: text}}
		}
		sum := sha256.Sum256([]byte(text))
		p := piece{sha256: hex.EncodeToString(sum[:]), bytes: len(text)}
		sources[p.sha256] = text
		shared = append(shared, p)
		return Pieces{p}
	}
	req.Messages = []storedMessage{}
	for i, m := range r.Request.Messages {
		content := Pieces{{text: m.Content}}
		if i < len(r.Request.Messages)-1 {
			content = share(m.Content)
		}
		req.Messages = append(req.Messages, storedMessage{Message: m, Content: content})
	}
	if p := r.Request.Prompt; p != nil {
		pieces := cut(*p, shared, sources)
		req.Prompt = &pieces
	}
	if c := r.Request.Constraint; c != nil {
		req.Constraint = &storedConstraint{Constraint: *c, Source: share(c.Source)}
	}
	return out, sources
}

// cut replaces each shared text by its reference, in order, where the prompt
// holds it.
func cut(prompt string, shared []piece, sources map[string]string) Pieces {
	var out Pieces
	for _, ref := range shared {
		before, after, ok := strings.Cut(prompt, sources[ref.sha256])
		if !ok {
			continue // the chat template changed it
		}
		if before != "" {
			out = append(out, piece{text: before})
		}
		out = append(out, ref)
		prompt = after
	}
	if prompt != "" || len(out) == 0 {
		out = append(out, piece{text: prompt})
	}
	return out
}

// join reads a stored record and puts its texts back.
func join(b []byte, source func(ref piece) (string, error)) (*record.Record, error) {
	var in storedRecord
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if in.SchemaVersion != record.SchemaVersion {
		return nil, fmt.Errorf("%w: schema_version is %q, not %q", ErrMalformed, in.SchemaVersion, record.SchemaVersion)
	}
	r := in.Record
	r.Request = nil
	if in.Request == nil {
		return &r, nil
	}
	whole := func(p Pieces) (string, error) {
		if len(p) == 1 && p[0].sha256 == "" {
			return p[0].text, nil
		}
		var text strings.Builder
		for _, x := range p {
			if x.sha256 != "" {
				var err error
				if x.text, err = source(x); err != nil {
					return "", err
				}
			}
			text.WriteString(x.text)
		}
		return text.String(), nil
	}
	req := in.Request.Request
	req.Messages = []record.Message{}
	for _, m := range in.Request.Messages {
		content, err := whole(m.Content)
		if err != nil {
			return nil, err
		}
		m.Message.Content = content
		req.Messages = append(req.Messages, m.Message)
	}
	if p := in.Request.Prompt; p != nil {
		prompt, err := whole(*p)
		if err != nil {
			return nil, err
		}
		req.Prompt = &prompt
	}
	if c := in.Request.Constraint; c != nil {
		text, err := whole(c.Source)
		if err != nil {
			return nil, err
		}
		c.Constraint.Source = text
		req.Constraint = &c.Constraint
	}
	r.Request = &req
	return &r, nil
}

func (s *Store) sourcePath(sum string) string { return filepath.Join(s.dir, sourcesDir, sum) }

// writeSource stores a text once. A file that is there already is checked the
// first time this process meets it, and written anew when it is not whole.
func (s *Store) writeSource(sum, text string) error {
	path := s.sourcePath(sum)
	s.mu.Lock()
	size, known := s.known[sum]
	s.mu.Unlock()
	if known {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == size {
			return nil
		}
	} else if b, err := readBounded(path, MaxSourceBytes); err == nil && string(b) == text {
		s.learn(sum, len(text))
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := writeFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	s.learn(sum, len(text))
	return nil
}

func (s *Store) learn(sum string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[sum] = int64(size)
}

func (s *Store) readSource(ref piece) (string, error) {
	path := s.sourcePath(ref.sha256)
	b, err := readBounded(path, MaxSourceBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Error{path, fmt.Errorf("%w: %w", ErrMissingSource, fs.ErrNotExist)}
	}
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != ref.sha256 {
		return "", &Error{path, ErrCorruptSource}
	}
	return string(b), nil
}
