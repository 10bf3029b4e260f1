package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Error says what could not be done in an output folder, and what to do.
type Error struct {
	Path  string // of the folder or the answer
	Doing string
	Err   error
	Hint  string
}

// Error prints path: doing: cause; hint.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %v", e.Path, e.Doing, e.Err)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrMoved is the cause when the folder was replaced by another while an
// answer was prepared in it. Nothing was published; the answer can be prepared
// again.
var ErrMoved = errors.New("the output folder was replaced by another one meanwhile")

var (
	errDone     = errors.New("output: this pending answer was committed or discarded before")
	errInUse    = errors.New("another process is publishing under the same id")
	errBadID    = errors.New("the id cannot be part of a file name")
	errBadName  = errors.New("this is no file name for an answer")
	errNoNumber = errors.New("the highest number of a turn is taken")
	errTooLong  = fmt.Errorf("the name would have more than %d bytes", maxName)
)

// failure words an error for people: the cause without the temporary file's
// name, and what to do about it.
func failure(path, doing string, err error) error {
	var perr *fs.PathError
	var lerr *os.LinkError
	switch {
	case errors.As(err, &perr):
		err = perr.Err
	case errors.As(err, &lerr):
		err = lerr.Err
	}
	return &Error{Path: path, Doing: doing, Err: err, Hint: hint(err)}
}

func hint(err error) string {
	switch {
	case errors.Is(err, errNoNumber):
		return "rename the file that has it"
	case errors.Is(err, errTooLong):
		return "shorten the format in the schema file's name"
	case errors.Is(err, errInUse):
		return "stop the other process, or wait for it"
	case errors.Is(err, ErrMoved):
		return "try again"
	case errors.Is(err, fs.ErrNotExist):
		return "make the folder again"
	case errors.Is(err, syscall.EPERM):
		// Rights are not what is missing; root gets it too.
		return "take the immutable or append-only flag off the folder (lsattr -d shows it, chattr -ia removes it)"
	case errors.Is(err, fs.ErrPermission):
		return "let this user write to the folder"
	}
	return systemHint(err)
}
