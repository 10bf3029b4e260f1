package openai

import (
	"fmt"
	"log/slog"
)

// Secret is a key that prints as nothing, whatever prints it.
type Secret struct{ value string }

const hidden = "[secret]"

// NewSecret wraps a key.
func NewSecret(key string) Secret { return Secret{key} }

// IsZero reports that there is no key.
func (s Secret) IsZero() bool { return s.value == "" }

// String is the same for every key, and empty for none.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return hidden
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format is String under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText is String; JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
