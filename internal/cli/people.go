package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"agentgraph/agents"
)

// usageError is a fault of the command line; it ends with where to read more.
type usageError struct {
	err error
	cmd string
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// warn tells people about an error, or each of several, on a line of its own.
func warn(w io.Writer, err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			warn(w, e)
		}
		return
	}
	fmt.Fprintf(w, "agentgraph: %s\n", agents.Printable(err.Error()))
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(w, "see: %s --help\n", usage.cmd)
	}
}

// printJSON prints one value on a line of stdout; <, > and & stand as they are.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// maxFileBytes bounds a file that an argument names.
const maxFileBytes = 64 << 20

// unlessEnded is what read returns, or the error of ctx where that ends first:
// a FIFO that nobody writes and a terminal keep a read waiting for ever, and
// neither knows of a context. The read goes on until the process ends.
func unlessEnded[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := read()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readFile reads a file that an argument names; what says which.
func readFile(ctx context.Context, what, path string) ([]byte, error) {
	return unlessEnded(ctx, func() ([]byte, error) { return readWhole(what, path) })
}

func readWhole(what, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(what, path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fileError(what, path, err)
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("%s %s has more than the %d bytes that are read; name another one", what, path, maxFileBytes)
	}
	return b, nil
}

// readStdin reads stdin to its end, with the bound of a file.
func readStdin(ctx context.Context, what string, stdin io.Reader) ([]byte, error) {
	b, err := unlessEnded(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(stdin, maxFileBytes+1)) })
	if err != nil {
		return nil, fmt.Errorf("reading %s from stdin: %w", what, err)
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("%s on stdin has more than the %d bytes that are read; give less", what, maxFileBytes)
	}
	return b, nil
}

// fileError says that a file an argument names cannot be had, and what to do.
func fileError(what, path string, err error) error {
	hint := "name another one"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint = "correct the path"
	case errors.Is(err, fs.ErrPermission):
		hint = "let this user read it"
	case errors.Is(err, syscall.EISDIR):
		hint = "name a file in it"
	}
	return fmt.Errorf("%s %s cannot be read: %w; %s", what, path, osCause(err), hint)
}

// osCause drops the path that an error of the os package repeats.
func osCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
