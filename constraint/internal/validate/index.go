package validate

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// SyntaxError says where a JSON text is not acceptable. Line and Column count
// from 1, columns in characters.
type SyntaxError struct {
	Line, Column int
	Reason       string
	// Path is a JSON pointer to the value that was being read.
	Path string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
}

// indexDepth bounds the nesting that Positions reads.
const indexDepth = 4096

// Index finds lines and columns of values in a JSON text.
type Index struct {
	src  string
	root *value
}

// Positions reads a JSON text and indexes it. The error is a *SyntaxError:
// the text is not JSON, names a member twice in one object, or is nested
// deeper than 4,096 levels.
func Positions(src []byte) (*Index, error) {
	ix, err := newIndex(string(src), indexDepth, 0)
	if err != nil {
		return nil, err
	}
	return ix, nil
}

func newIndex(src string, depth, maxNumber int) (*Index, *SyntaxError) {
	p := parser{text: src, maxNodes: math.MaxInt, maxDepth: depth, maxNumber: maxNumber}
	if len(src) > math.MaxInt32 {
		return nil, &SyntaxError{Line: 1, Column: 1, Reason: "the text is larger than 2 GiB"}
	}
	root, err := p.parse()
	if err != nil {
		line, col := position(src, err.off)
		return nil, &SyntaxError{Line: line, Column: col, Reason: err.reason, Path: err.at}
	}
	return &Index{src: src, root: root}, nil
}

// position turns a byte offset into a line and a column in characters.
func position(src string, off int) (line, col int) {
	line = 1
	start := 0
	for i := 0; i < off && i < len(src); i++ {
		if src[i] == '\n' {
			line++
			start = i + 1
		}
	}
	return line, utf8.RuneCountInString(src[start:min(off, len(src))]) + 1
}

// Of returns where the value that a JSON pointer names starts. Both count
// from 1; columns are characters.
func (ix *Index) Of(pointer string) (line, col int, ok bool) {
	v, _ := ix.locate(pointer)
	if v == nil {
		return 0, 0, false
	}
	line, col = position(ix.src, int(v.off))
	return line, col, true
}

// OfKey is Of for the member name in front of the value. For an array item
// and for the root it is the value itself.
func (ix *Index) OfKey(pointer string) (line, col int, ok bool) {
	v, key := ix.locate(pointer)
	if v == nil {
		return 0, 0, false
	}
	line, col = position(ix.src, int(key))
	return line, col, true
}

func (ix *Index) locate(pointer string) (v *value, key int32) {
	tokens, ok := splitPointer(pointer)
	if !ok {
		return nil, 0
	}
	v, key = ix.root, ix.root.off
	for _, t := range tokens {
		i := v.step(t)
		if i < 0 {
			return nil, 0
		}
		if v.kind == kObject {
			key = v.obj.offs[i]
		} else {
			key = v.items[i].off
		}
		v = &v.items[i]
	}
	return v, key
}
