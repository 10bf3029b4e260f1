package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"agentgraph/model"
)

// Builtins are the names of the tools that need no program.
var Builtins = []string{"read_file", "list_folder", "write_note", "send_message"}

// function is a Tool made of a function.
type function struct {
	spec model.Tool
	call func(ctx context.Context, c Call) (string, error)
}

func (f *function) Spec() model.Tool { return f.spec }

func (f *function) Call(ctx context.Context, c Call) (Output, error) {
	text, err := f.call(ctx, c)
	return Output{Text: text}, err
}

func builtin(c Config, at Place) (Tool, error) {
	if !slices.Contains(Builtins, c.Builtin) {
		return nil, &OpenError{Tool: c.Builtin, Err: errors.New("there is no such built-in tool"), Hint: "there are " + strings.Join(Builtins, ", ")}
	}
	if at.Root == "" {
		return nil, &OpenError{Tool: c.Builtin, Err: errors.New("it works on the files of a graph, and this is outside one"), Hint: "call it inside a graph"}
	}
	sees := c.Dir
	if sees == "" {
		sees = at.Root
	}
	rel, err := filepath.Rel(at.Root, sees)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &OpenError{Tool: c.Builtin, Err: fmt.Errorf("its folder %s lies outside the graph", sees), Hint: "nothing leaves the graph; name a folder in it"}
	}
	files := files{root: at.Root, below: filepath.ToSlash(rel)}
	switch c.Builtin {
	case "read_file":
		return files.reader(), nil
	case "list_folder":
		return files.lister(), nil
	case "write_note":
		return noteWriter(at)
	}
	return messenger(at)
}

// files are the files below a folder of the graph. Names that begin with a dot
// are not there: ledgers, keys and version control are nobody's reading.
type files struct{ root, below string }

func (f files) reader() Tool {
	return &function{
		spec: model.Tool{Name: "read_file", Description: "Read a text file. Paths are relative, with forward slashes.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","minLength":1,"maxLength":400},"offset":{"type":"integer","minimum":0,"maximum":1000000000,"description":"bytes to skip"}},"required":["path"],"additionalProperties":false}`)},
		call: func(_ context.Context, c Call) (string, error) {
			var in struct {
				Path   string `json:"path"`
				Offset int64  `json:"offset"`
			}
			if err := decode(c.Arguments, &in); err != nil {
				return "", err
			}
			root, name, err := f.open(in.Path)
			if err != nil {
				return "", err
			}
			defer root.Close()
			return readText(root, name, in.Path, in.Offset)
		},
	}
}

// maxRead bounds a file that is read; what a model gets is bounded further.
const maxRead = 16 << 20

func readText(root *os.Root, name, shown string, offset int64) (string, error) {
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", fileError(shown, err)
	case info.IsDir():
		return "", fmt.Errorf("%s is a folder; list_folder shows what is in it", shown)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", shown)
	case info.Size() > maxRead:
		return "", fmt.Errorf("%s has %d bytes, more than can be read (%d)", shown, info.Size(), int64(maxRead))
	case offset > info.Size():
		return "", fmt.Errorf("%s has %d bytes; the offset %d is behind its end", shown, info.Size(), offset)
	}
	file, err := root.Open(name)
	if err != nil {
		return "", fileError(shown, err)
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return "", fileError(shown, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxRead))
	if err != nil {
		return "", fileError(shown, err)
	}
	if offset > 0 {
		// The offset may stand inside a character.
		for i := 0; i < utf8.UTFMax && len(data) > 0 && !utf8.RuneStart(data[0]); i++ {
			data = data[1:]
		}
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("%s is not text", shown)
	}
	return string(data), nil
}

func (f files) lister() Tool {
	return &function{
		spec: model.Tool{Name: "list_folder", Description: "List the files and folders of a folder. Use \".\" for the top folder.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","minLength":1,"maxLength":400}},"required":["path"],"additionalProperties":false}`)},
		call: func(_ context.Context, c Call) (string, error) {
			var in struct {
				Path string `json:"path"`
			}
			if err := decode(c.Arguments, &in); err != nil {
				return "", err
			}
			root, name, err := f.open(in.Path)
			if err != nil {
				return "", err
			}
			defer root.Close()
			return list(root, name, in.Path)
		},
	}
}

// maxListed bounds a listing.
const maxListed = 1000

func list(root *os.Root, name, shown string) (string, error) {
	dir, err := root.Open(name)
	if err != nil {
		return "", fileError(shown, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return "", fileError(shown, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	n, left := 0, 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if n == maxListed {
			left++
			continue
		}
		n++
		switch info, err := e.Info(); {
		case e.IsDir():
			fmt.Fprintf(&b, "%s/\n", e.Name())
		case err == nil && info.Mode().IsRegular():
			fmt.Fprintf(&b, "%s (%d bytes)\n", e.Name(), info.Size())
		default:
			fmt.Fprintf(&b, "%s\n", e.Name())
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "[and %d more]\n", left)
	}
	if n == 0 {
		return "the folder is empty", nil
	}
	return b.String(), nil
}

// open opens the folder and makes name one inside it. The root keeps links
// from leading out.
func (f files) open(name string) (*os.Root, string, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !fs.ValidPath(clean) || strings.ContainsRune(name, 0) {
		return nil, "", fmt.Errorf("%q is no path in this folder; paths are relative and have no '..'", name)
	}
	for _, part := range strings.Split(clean, "/") {
		if strings.HasPrefix(part, ".") && part != "." {
			return nil, "", fmt.Errorf("%s does not exist", name)
		}
	}
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return nil, "", unpath(err)
	}
	defer root.Close()
	sub, err := root.OpenRoot(filepath.FromSlash(f.below))
	if err != nil {
		return nil, "", fileError(f.below, err)
	}
	return sub, filepath.FromSlash(clean), nil
}

// fileError is an error without the places of this machine.
func fileError(shown string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", shown)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		err = le.Err
	}
	return fmt.Errorf("%s: %v", shown, err)
}

// decode reads arguments; models without a mask may send others than asked.
func decode(args json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the arguments are not as described: %v", err)
	}
	return nil
}
