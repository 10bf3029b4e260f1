package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"agentgraph/internal/plainjson"
)

// MaxAuditLine bounds one line of the audit log, its line feed included.
const MaxAuditLine = 1 << 20

// ErrAuditLine is returned for an event that does not fit into a line. Its
// hash and size are in the log in its place.
var ErrAuditLine = errors.New("the event is too large for the audit log")

// Audit appends to log/audit.jsonl. Several goroutines and several processes
// may append at once: each event is one write at the end of the file.
type Audit struct {
	path string
	sync bool

	mu      sync.Mutex
	file    *os.File
	lock    *flock.Flock // of file, held while a line is written
	secrets *strings.Replacer
}

// AuditOption changes how the log is written.
type AuditOption func(*Audit)

// WithSync makes Append return only when the event is on disk.
func WithSync() AuditOption { return func(a *Audit) { a.sync = true } }

// WithSecrets keeps each of these out of the log, whatever an event holds.
// Secrets under eight bytes are left alone: they would tear ordinary words.
func WithSecrets(secrets ...string) AuditOption {
	return func(a *Audit) {
		var pairs []string
		for _, s := range secrets {
			if len(s) < 8 {
				continue
			}
			if b, err := plainjson.Marshal(s); err == nil {
				pairs = append(pairs, string(b[1:len(b)-1]), "[secret]")
			}
		}
		a.secrets = strings.NewReplacer(pairs...)
	}
}

// OpenAudit names the log in logDir; the first Append makes it. Only its
// owner can read it: it holds prompts.
func OpenAudit(logDir string, opts ...AuditOption) *Audit {
	a := &Audit{path: filepath.Join(logDir, "audit.jsonl"), secrets: strings.NewReplacer()}
	for _, o := range opts {
		o(a)
	}
	return a
}

// Append adds one event, any value that encodes to JSON, as one line.
func (a *Audit) Append(event any) error {
	b, err := plainjson.Marshal(event)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	line := a.secrets.Replace(string(b)) + "\n"
	var tooLong error
	if len(line) > MaxAuditLine {
		sum := sha256.Sum256([]byte(line))
		stub, err := json.Marshal(map[string]any{"event": "oversized", "bytes": len(line), "sha256": hex.EncodeToString(sum[:])})
		if err != nil {
			return err
		}
		line = string(stub) + "\n"
		tooLong = ErrAuditLine
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.open(); err != nil {
		return err
	}
	if err := a.lock.Lock(); err != nil {
		return fmt.Errorf("locking %s: %w", a.path, err)
	}
	defer a.lock.Unlock()
	torn, err := cutOff(a.file)
	if err != nil {
		return err
	}
	if torn {
		line = "\n" + line
	}
	if _, err := a.file.WriteString(line); err != nil {
		return err
	}
	if a.sync {
		if err := a.file.Sync(); err != nil {
			return err
		}
	}
	return tooLong
}

// open opens the log, also when it was moved away since the last event.
func (a *Audit) open() error {
	if a.file != nil {
		now, err := os.Stat(a.path)
		if err == nil {
			was, err := a.file.Stat()
			if err == nil && os.SameFile(now, was) {
				return nil
			}
		}
		a.file.Close()
		a.file = nil
	}
	if err := os.MkdirAll(filepath.Dir(a.path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	a.file, a.lock = f, flock.New(a.path, flock.SetPermissions(0o600))
	return nil
}

// cutOff reports whether the last line lacks its end because its writer died.
// Without the lock it could be a line that is being written: the size of a
// file grows while a write goes on.
func cutOff(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return false, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// Close closes the log; Append opens it again.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}
