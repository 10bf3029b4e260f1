package validate

import (
	"hash/maphash"
)

type kind uint8

const (
	kNull kind = iota
	kFalse
	kTrue
	kNumber
	kString
	kArray
	kObject
)

// value is one parsed JSON value. Members and items keep the order of the
// text. Fields marked lazy are caches: a tree belongs to one goroutine, or is
// read only after every cache is filled (see freeze).
type value struct {
	kind  kind
	small bool   // number: an integer of at most 18 digits, in n
	off   int32  // offset of the first byte in the text
	runes int32  // string: length in code points
	dup   int32  // array, lazy: see duplicate
	n     int64  // small number
	text  string // string: decoded
	num   *decimal
	items []value // array items or member values
	obj   *object
	hash  uint64 // lazy, 0 when not computed
}

// object holds the names of an object's members, beside value.items.
type object struct {
	names []string
	offs  []int32          // offsets of the names in the text
	index map[string]int32 // only for objects with many members
}

// linearLookup is how many members are searched without a map.
const linearLookup = 8

// find returns the position of a member, or -1.
func (v *value) find(name string) int {
	if v.obj == nil {
		return -1
	}
	if v.obj.index != nil {
		if i, ok := v.obj.index[name]; ok {
			return int(i)
		}
		return -1
	}
	for i, n := range v.obj.names {
		if n == name {
			return i
		}
	}
	return -1
}

// get returns a member's value, or nil.
func (v *value) get(name string) *value {
	if i := v.find(name); i >= 0 {
		return &v.items[i]
	}
	return nil
}

// str returns a member that is a string.
func (v *value) str(name string) (string, bool) {
	if m := v.get(name); m != nil && m.kind == kString {
		return m.text, true
	}
	return "", false
}

var seed = maphash.MakeSeed()

// sum returns a hash that is equal for equal JSON values.
func (v *value) sum() uint64 {
	if v.hash != 0 {
		return v.hash
	}
	h := uint64(v.kind) + 1
	switch v.kind {
	case kNumber:
		if v.small {
			h = mix(h, uint64(v.n))
		} else {
			h = mix(h, maphash.String(seed, v.num.digits))
			h = mix(h, uint64(v.num.exp))
			if v.num.neg {
				h = mix(h, 1)
			}
		}
	case kString:
		h = mix(h, maphash.String(seed, v.text))
	case kArray:
		for i := range v.items {
			h = mix(h, v.items[i].sum())
		}
	case kObject:
		var members uint64 // order does not matter
		for i := range v.items {
			members += mix(maphash.String(seed, v.obj.names[i]), v.items[i].sum())
		}
		h = mix(mix(h, members), uint64(len(v.items)))
	}
	if h == 0 {
		h = 1
	}
	v.hash = h
	return h
}

func mix(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// equal compares two JSON values: numbers by value, objects without order.
// spend is called once per compared value and stops the comparison when it
// returns false.
func equal(a, b *value, spend func() bool) bool {
	if a.kind != b.kind || !spend() {
		return false
	}
	switch a.kind {
	case kNumber:
		if a.small || b.small {
			return a.small == b.small && a.n == b.n
		}
		return *a.num == *b.num
	case kString:
		return a.text == b.text
	case kArray:
		if len(a.items) != len(b.items) {
			return false
		}
		for i := range a.items {
			if !equal(&a.items[i], &b.items[i], spend) {
				return false
			}
		}
	case kObject:
		if len(a.items) != len(b.items) {
			return false
		}
		for i, name := range a.obj.names {
			m := b.get(name)
			if m == nil || !equal(&a.items[i], m, spend) {
				return false
			}
		}
	}
	return true
}

// duplicate returns the position of the first item that equals an earlier
// one, or -1. The result is kept.
func (v *value) duplicate(spend func() bool) int {
	if v.dup != 0 {
		return int(v.dup) - 2
	}
	seen := make(map[uint64]int32, len(v.items))
	next := make([]int32, len(v.items)) // earlier item with the same hash
	result := -1
scan:
	for i := range v.items {
		h := v.items[i].sum()
		first, ok := seen[h]
		if !ok {
			first = -1
		}
		for j := first; j >= 0; j = next[j] {
			if equal(&v.items[i], &v.items[j], spend) {
				result = i
				break scan
			}
		}
		next[i] = first
		seen[h] = int32(i)
	}
	v.dup = int32(result) + 2
	return result
}

// freeze fills the caches of a schema's constants, which many goroutines
// read.
func (v *value) freeze() { v.sum() }
