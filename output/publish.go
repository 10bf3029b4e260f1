package output

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// Publish makes data a new file in the folder at dir and returns its path.
// Callers that publish more than once into a large folder keep a [Folder].
func Publish(ctx context.Context, dir string, p Pattern, started time.Time, data []byte) (path string, err error) {
	return Open(dir).Publish(ctx, p, started, data)
}

// Publish makes data a new file in the folder and returns its path; see
// [Pending.Commit] for a path that comes with an error.
func (f *Folder) Publish(ctx context.Context, p Pattern, started time.Time, data []byte) (path string, err error) {
	pending, err := f.Prepare(ctx, "", data)
	if err != nil {
		return "", err
	}
	defer func() {
		if derr := pending.Discard(); err == nil {
			err = derr
		}
	}()
	for {
		path, err := pending.take(p, started)
		if err == nil {
			return path, pending.sync(path)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// take chooses a name and takes it. Goroutines that share a Folder do so one
// after the other, and sync together.
func (p *Pending) take(pattern Pattern, started time.Time) (path string, err error) {
	p.folder.naming.Lock()
	defer p.folder.naming.Unlock()
	name, err := p.NextName(pattern, started)
	if err != nil {
		return "", err
	}
	return p.rename(name)
}
