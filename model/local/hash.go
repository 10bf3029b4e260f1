package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// weightsSHA256 is the sha256 of the model's file, or of its parts one after
// the other. Reading gigabytes takes seconds, so the result is kept in the
// user's cache folder under path, size and time of last change.
func weightsSHA256(paths []string) (string, error) {
	key, err := hashKey(paths)
	if err != nil {
		return "", err
	}
	kept := ""
	if dir, err := os.UserCacheDir(); err == nil {
		sum := sha256.Sum256(key)
		kept = filepath.Join(dir, "agentgraph", "sha256", hex.EncodeToString(sum[:16]))
		if data, err := os.ReadFile(kept); err == nil && len(data) == 64 {
			if _, err := hex.DecodeString(string(data)); err == nil {
				return string(data), nil
			}
		}
	}
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return "", err
		}
		_, err = io.CopyBuffer(h, struct{ io.Reader }{f}, buf)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	out := hex.EncodeToString(h.Sum(nil))
	if again, err := hashKey(paths); err != nil || string(again) != string(key) {
		return out, nil // changed while it was read: right for nobody, keep nothing
	}
	if kept != "" {
		keep(kept, out)
	}
	return out, nil
}

func hashKey(paths []string) ([]byte, error) {
	var key []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, err
		}
		key = append(key, abs, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	return json.Marshal(key)
}

// keep writes a small cache file in one step; a failure only costs time later.
func keep(path, text string) {
	dir := filepath.Dir(path)
	if os.MkdirAll(dir, 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
}
