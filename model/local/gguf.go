package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// gguf is what the header of a GGUF file says. The format:
// magic "GGUF", version, tensor count, key count, keys, tensor table, data.
type gguf struct {
	path string
	// text and ints hold the scalar values of the keys.
	text map[string]string
	ints map[string]int64
	// lens holds the length of each array value.
	lens map[string]int
	// need is the size in bytes that the tensor table asks for, have the
	// size of the file.
	need, have int64
}

// Bounds on what a header may claim, far above any real file.
const (
	maxGGUFCount  = 1 << 20
	maxGGUFString = 64 << 20
)

// readGGUF reads the header of a model file and makes sure the file is whole,
// before llama.cpp maps it: reading past the end of a mapped file is a crash.
// rowSize gives the bytes of a row of n elements of a tensor type, or 0.
func readGGUF(path string, rowSize func(kind uint32, n uint64) uint64) (*gguf, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the model file %s does not exist; check the path", path)
	case err != nil:
		return nil, fmt.Errorf("opening the model file: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name the .gguf file in it", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the model file: %w", err)
	}
	defer f.Close()
	r := &ggufReader{r: bufio.NewReaderSize(f, 1<<16), left: info.Size()}
	g := &gguf{path: path, have: info.Size(), text: map[string]string{}, ints: map[string]int64{}, lens: map[string]int{}}
	if err := g.read(r, rowSize); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("the model file %s is cut short: it ends after %d bytes, inside its header; fetch it again", path, g.have)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if g.have < g.need {
		return nil, fmt.Errorf("the model file %s is cut short: it has %d of the %d bytes its tensor table asks for; fetch it again", path, g.have, g.need)
	}
	return g, nil
}

func (g *gguf) read(r *ggufReader, rowSize func(uint32, uint64) uint64) error {
	magic := r.bytes(4)
	if r.err == nil && string(magic) != "GGUF" {
		return fmt.Errorf("not a GGUF file: it starts with %q; a model in another format must be converted first", magic)
	}
	version := r.u32()
	if r.err == nil && (version < 2 || version > 3) {
		if version&0xffff == 0 && version != 0 {
			return errors.New("the file is big-endian and this machine is not; fetch the little-endian one")
		}
		return fmt.Errorf("GGUF version %d is not one of 2 and 3; convert the model again with a current converter", version)
	}
	tensors, keys := r.u64(), r.u64()
	if r.err == nil && (tensors > maxGGUFCount || keys > maxGGUFCount) {
		return fmt.Errorf("the header claims %d tensors and %d keys; the file is damaged, fetch it again", tensors, keys)
	}
	for range keys {
		name := r.str()
		kind := r.u32()
		g.value(r, name, kind)
		if r.err != nil {
			return r.err
		}
	}
	align := int64(32)
	if a, ok := g.ints["general.alignment"]; ok {
		if a <= 0 || a&(a-1) != 0 || a > 1<<20 {
			return fmt.Errorf("general.alignment is %d, which is no power of two; the file is damaged, fetch it again", a)
		}
		align = a
	}
	var end uint64
	for range tensors {
		name := r.str()
		dims := r.u32()
		if r.err == nil && (dims == 0 || dims > 4) {
			return fmt.Errorf("tensor %q has %d dimensions; the file is damaged, fetch it again", name, dims)
		}
		n, rows := uint64(1), uint64(1)
		for d := range dims {
			v := r.u64()
			if d == 0 {
				n = v
			} else if v != 0 && rows > math.MaxUint64/v {
				return fmt.Errorf("tensor %q is larger than any memory; the file is damaged, fetch it again", name)
			} else {
				rows *= v
			}
		}
		kind, offset := r.u32(), r.u64()
		if r.err != nil {
			return r.err
		}
		row := rowSize(kind, n)
		if row == 0 {
			return fmt.Errorf("tensor %q has type %d with rows of %d, which this build of llama.cpp does not know; use a file in another quantisation", name, kind, n)
		}
		if rows > math.MaxInt64/row || offset > math.MaxInt64-row*rows {
			return fmt.Errorf("tensor %q is larger than any memory; the file is damaged, fetch it again", name)
		}
		end = max(end, offset+row*rows)
	}
	if r.err != nil {
		return r.err
	}
	start := (g.have - r.left + align - 1) / align * align
	if end > uint64(math.MaxInt64-start) {
		return errors.New("the tensor table points past any file; the file is damaged, fetch it again")
	}
	g.need = start + int64(end)
	return nil
}

// value reads one value of a key.
func (g *gguf) value(r *ggufReader, name string, kind uint32) {
	switch kind {
	case 8:
		g.text[name] = r.str()
	case 9:
		elem, n := r.u32(), r.u64()
		if r.err != nil {
			return
		}
		if n > uint64(r.left) {
			r.err = io.ErrUnexpectedEOF
			return
		}
		g.lens[name] = int(n)
		if elem == 8 {
			for range n {
				r.skipStr()
				if r.err != nil {
					return
				}
			}
			return
		}
		size := scalarSize(elem)
		if size == 0 {
			r.err = fmt.Errorf("key %q is an array of type %d, which does not exist; the file is damaged, fetch it again", name, elem)
			return
		}
		r.skip(int64(n) * size)
	default:
		size := scalarSize(kind)
		if size == 0 {
			if r.err == nil {
				r.err = fmt.Errorf("key %q has type %d, which does not exist; the file is damaged, fetch it again", name, kind)
			}
			return
		}
		var buf [8]byte
		copy(buf[:], r.bytes(int(size)))
		v := binary.LittleEndian.Uint64(buf[:])
		switch kind {
		case 6, 12: // floats: nobody here asks for one
		case 1, 3, 5:
			shift := 64 - 8*size
			g.ints[name] = int64(v<<shift) >> shift
		default:
			g.ints[name] = int64(v)
		}
	}
}

// scalarSize is the size of a value type: u8 i8 u16 i16 u32 i32 f32 bool
// string array u64 i64 f64.
func scalarSize(kind uint32) int64 {
	sizes := [...]int64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}
	if int(kind) < len(sizes) {
		return sizes[kind]
	}
	return 0
}

// hyper is a number of the architecture, such as "block_count". A model may
// give one per layer instead; then it is 0.
func (g *gguf) hyper(name string) int64 {
	return g.ints[g.text["general.architecture"]+"."+name]
}

var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// parts checks all files of a split model and returns their paths and how
// many bytes they have together.
func (g *gguf) parts(rowSize func(uint32, uint64) uint64) ([]string, int64, error) {
	n := g.ints["split.count"]
	if n <= 1 {
		return []string{g.path}, g.have, nil
	}
	m := splitName.FindStringSubmatch(filepath.Base(g.path))
	if m == nil || m[2] != "00001" {
		return nil, 0, fmt.Errorf("%s is part of a model of %d files; name the first, which ends in -00001-of-%05d.gguf", g.path, n, n)
	}
	count, _ := strconv.Atoi(m[3])
	if int64(count) != n {
		return nil, 0, fmt.Errorf("%s says in its name that there are %d parts and inside that there are %d", g.path, count, n)
	}
	paths, total := []string{g.path}, g.have
	for i := 2; i <= count; i++ {
		p := filepath.Join(filepath.Dir(g.path), fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i, m[3]))
		part, err := readGGUF(p, rowSize)
		if err != nil {
			return nil, 0, fmt.Errorf("part %d of %d: %w", i, count, err)
		}
		paths, total = append(paths, p), total+part.have
	}
	return paths, total, nil
}

// ggufReader reads little-endian values and remembers the first error.
type ggufReader struct {
	r    *bufio.Reader
	left int64
	err  error
}

func (r *ggufReader) take(n int64) bool {
	if r.err == nil && (n < 0 || n > r.left) {
		r.err = io.ErrUnexpectedEOF
	}
	if r.err != nil {
		return false
	}
	r.left -= n
	return true
}

func (r *ggufReader) bytes(n int) []byte {
	if !r.take(int64(n)) {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		r.err = io.ErrUnexpectedEOF
		return nil
	}
	return b
}

func (r *ggufReader) skip(n int64) {
	if !r.take(n) {
		return
	}
	for n > 0 {
		k, err := r.r.Discard(int(min(n, 1<<30)))
		n -= int64(k)
		if err != nil {
			r.err = io.ErrUnexpectedEOF
			return
		}
	}
}

func (r *ggufReader) small(n int) uint64 {
	if !r.take(int64(n)) {
		return 0
	}
	b, err := r.r.Peek(n)
	if err != nil {
		r.err = io.ErrUnexpectedEOF
		return 0
	}
	var buf [8]byte
	copy(buf[:], b)
	r.r.Discard(n)
	return binary.LittleEndian.Uint64(buf[:])
}

func (r *ggufReader) u32() uint32 { return uint32(r.small(4)) }
func (r *ggufReader) u64() uint64 { return r.small(8) }

func (r *ggufReader) str() string {
	n := r.u64()
	if r.err == nil && n > maxGGUFString {
		r.err = fmt.Errorf("a string of %d bytes in the header; the file is damaged, fetch it again", n)
	}
	if r.err != nil {
		return ""
	}
	return string(r.bytes(int(n)))
}

func (r *ggufReader) skipStr() {
	n := r.u64()
	if n > math.MaxInt64 {
		r.err = io.ErrUnexpectedEOF
		return
	}
	r.skip(int64(n))
}
