package store

import (
	"crypto/sha256"
	"encoding/hex"

	"agentgraph/record"
)

// Decode reads a record as it is stored, for callers that open files in their
// own way; source returns the bytes of turns/sources/<sum>, whose hash is
// checked here.
func Decode(b []byte, source func(sum string) ([]byte, error)) (*record.Record, error) {
	return join(b, func(ref piece) (string, error) {
		text, err := source(ref.sha256)
		if err != nil {
			return "", err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != ref.sha256 {
			return "", ErrCorruptSource
		}
		return string(text), nil
	})
}
