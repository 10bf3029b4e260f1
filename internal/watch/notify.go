package watch

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

type notify struct{ w *fsnotify.Watcher }

// NewNotify is the source of a Watcher that is given none: fsnotify.
func NewNotify() (Source, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return notify{w}, nil
}

func (n notify) Add(dir string) error          { return n.w.Add(dir) }
func (n notify) Remove(dir string) error       { return n.w.Remove(dir) }
func (n notify) Events() <-chan fsnotify.Event { return n.w.Events }
func (n notify) Errors() <-chan error          { return n.w.Errors }
func (n notify) Close() error                  { return n.w.Close() }

// Clock is where the package takes the time from.
type Clock interface {
	Now() time.Time
	// Timer returns a channel that receives after d, and a function that
	// frees it.
	Timer(d time.Duration) (<-chan time.Time, func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// raised is a value to recommend for a limit: four times what it is now.
func raised(path string, least int) string {
	data, err := os.ReadFile(path)
	n, err2 := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || err2 != nil || n*4 < least || n > 1<<28 {
		return strconv.Itoa(least)
	}
	return strconv.Itoa(n * 4)
}
