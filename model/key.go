package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// ConversationSHA256 names a conversation by what it says: the roles and texts
// of its messages, and the calls of tools in them. Ids of calls and reasoning
// do not count: they differ between engines.
func ConversationSHA256(msgs []Message) string {
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	type message struct {
		Role    Role   `json:"role"`
		Content string `json:"content"`
		Calls   []call `json:"calls,omitempty"`
	}
	h := sha256.New()
	enc := json.NewEncoder(h)
	enc.SetEscapeHTML(false)
	for _, m := range msgs {
		said := message{Role: m.Role, Content: m.Content}
		for _, c := range m.ToolCalls {
			said.Calls = append(said.Calls, call{c.Name, CompactArguments(c.Arguments)})
		}
		_ = enc.Encode(said) // texts and JSON always encode
	}
	return hex.EncodeToString(h.Sum(nil))
}
