package distill

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"agentgraph/record"
)

// Format is the format of an export's files.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Formats are all formats.
var Formats = []Format{JSONL, Parquet}

// rowGroupBytes is about how much text a Parquet file gathers in memory before
// it is written as one row group.
const rowGroupBytes = 16 << 20

// dataFile is one file of an export while it is written.
type dataFile struct {
	file *os.File
	buf  *bufio.Writer
	hash hash.Hash
	size int64
	info DataFile

	parquet *parquet.Writer
	pending int // bytes of texts in the row group
}

// DataFile is one file of an export.
type DataFile struct {
	Path   string `json:"path"` // in the export's folder
	Split  string `json:"split,omitempty"`
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// createFile makes a file that nobody had, in dir.
func createFile(dir, name, split string) (*dataFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	d := &dataFile{file: f, hash: sha256.New(), info: DataFile{Path: name, Split: split}}
	d.buf = bufio.NewWriterSize(d, 1<<18)
	return d, nil
}

// Write goes to disk and into the hash.
func (d *dataFile) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.hash.Write(p[:n])
	d.size += int64(n)
	return n, err
}

// startParquet makes it a Parquet file of these rows. What it says about its
// maker is fixed, so that the same rows give the same bytes.
func (d *dataFile) startParquet(row reflect.Type) {
	schema := parquet.SchemaOf(reflect.Zero(row).Interface())
	d.parquet = parquet.NewWriter(d.buf, schema,
		parquet.Compression(&parquet.Zstd), parquet.CreatedBy("agentgraph", "", ""))
}

// encoded is a row ready to be written.
type encoded struct {
	line  []byte // of JSONL
	value any    // of Parquet
	bytes int
}

func encodeRow(format Format, row reflect.Value) (encoded, error) {
	if format == JSONL {
		line, err := encodeLine(row.Interface())
		return encoded{line: line, bytes: len(line)}, err
	}
	return encoded{value: row.Interface(), bytes: textBytes(row)}, nil
}

func encodeLine(v any) ([]byte, error) {
	var w lineWriter
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return w, err
}

type lineWriter []byte

func (w *lineWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// textBytes is about how much memory a row takes.
func textBytes(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return v.Len() + 16
	case reflect.Slice:
		n := 0
		for i := range v.Len() {
			n += textBytes(v.Index(i))
		}
		return n
	case reflect.Struct:
		n := 0
		for i := range v.NumField() {
			n += textBytes(v.Field(i))
		}
		return n
	}
	return 8
}

func (d *dataFile) add(e encoded) error {
	d.info.Rows++
	if d.parquet == nil {
		_, err := d.buf.Write(e.line)
		return err
	}
	if err := d.parquet.Write(e.value); err != nil {
		return err
	}
	if d.pending += e.bytes; d.pending >= rowGroupBytes {
		d.pending = 0
		return d.parquet.Flush()
	}
	return nil
}

// finish writes what is left and syncs.
func (d *dataFile) finish() (DataFile, error) {
	if d.parquet != nil {
		if err := d.parquet.Close(); err != nil {
			return d.info, err
		}
	}
	if err := d.buf.Flush(); err != nil {
		return d.info, err
	}
	if err := d.file.Sync(); err != nil {
		return d.info, err
	}
	d.info.Bytes, d.info.SHA256 = d.size, hex.EncodeToString(d.hash.Sum(nil))
	return d.info, d.file.Close()
}

// newFolder is a folder that gets its name when everything in it is whole.
type newFolder struct {
	path string // its name
	temp string
}

// createFolder makes a folder beside the one that is wanted, which must not be
// there.
func createFolder(path string) (*newFolder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := mustBeNew(abs, path); err != nil {
		return nil, err
	}
	// Not os.MkdirTemp: its folder is one user's, and changing that can fail.
	temp := filepath.Join(filepath.Dir(abs), ".agentgraph-export-"+record.NewID()+".tmp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		return nil, fmt.Errorf("%s cannot be made: %w; name a folder in one that is there and that this user may write to", path, osCause(err))
	}
	return &newFolder{abs, temp}, nil
}

// osCause is an error without the path that the message names already.
func osCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func mustBeNew(abs, shown string) error {
	if _, err := os.Lstat(abs); err == nil {
		return fmt.Errorf("%s is there already; nothing is overwritten: name a new folder", shown)
	} else if !os.IsNotExist(err) {
		return err
	}
	return nil
}

// commit gives the folder its name.
func (f *newFolder) commit() error {
	if err := syncFolder(f.temp); err != nil {
		return err
	}
	if err := mustBeNew(f.path, f.path); err != nil {
		return err
	}
	// Between the two only an empty folder can be replaced: the system refuses
	// everything else.
	if err := os.Rename(f.temp, f.path); err != nil {
		return err
	}
	f.temp = ""
	return syncFolder(filepath.Dir(f.path))
}

// discard removes what was not committed.
func (f *newFolder) discard() {
	if f.temp != "" {
		_ = os.RemoveAll(f.temp)
	}
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writeFile is a whole small file of the folder.
func (f *newFolder) writeFile(name string, data []byte) error {
	d, err := createFile(f.temp, name, "")
	if err != nil {
		return err
	}
	if _, err := d.buf.Write(data); err != nil {
		return err
	}
	_, err = d.finish()
	return err
}
